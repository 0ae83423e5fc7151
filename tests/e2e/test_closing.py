"""Closing the window ends every thread, link and GPU object within 5 s, exit code 0, ten times in a row."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

TIMES = 10
WITHIN_S = 5.0


def test_closing_the_window_ends_everything_ten_times(tmp_path: Path) -> None:
    for number in range(TIMES):
        home = tmp_path / str(number)
        environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "POOLED_HOME": str(home)}
        environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
        done = subprocess.run(
            [sys.executable, "-m", "tests.e2e.closing_window"],
            env=environment, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        ended = time.time()
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        assert "engine_0" in said["threads"]
        assert said["left"] == []
        assert ended - said["at"] < WITHIN_S
        assert "Traceback" not in done.stderr, done.stderr
