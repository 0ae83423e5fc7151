"""The benchmark of rooms on one GPU runs to its end, over real processes and links."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.shared import shared_file

LINE = re.compile(r"^ +2 +5 +(plain|drafts) \| +([\d.]+) tok/s .* engines ([\d.]+) \+ ([\d.]+), .* right +(-|\d+%)$")


def test_a_room_of_two_processes_is_measured() -> None:
    model = shared_file("models/tiny-qwen3.gguf")
    arguments = ["--devices", "2", "--delay", "5", "--right", "0.8", "--words", "24", "--repeats", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.gpu_rooms", str(model), *arguments],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = [match for line in done.stdout.splitlines() if (match := LINE.match(line))]
    assert [match[1] for match in found] == ["plain", "drafts"], done.stdout
    assert all(float(match[group]) > 0 for match in found for group in (2, 3, 4))
