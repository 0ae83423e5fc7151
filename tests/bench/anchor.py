"""Ours beside llama.cpp's Vulkan server on the same files and the same GPU, in one run, as ratios.

``python -m tests.bench.anchor FOLDER MODEL...`` runs FOLDER/MODEL.gguf. The server and the script that times it
are not part of this repository: ``--script`` (default .anchor/bench.py) is called as ``SCRIPT SECONDS MODEL:MODE...``
and writes one JSON line a mode to $OUT/res.jsonl: p512, p2048, p8192 (prompt tokens a second), d0, d4k, d16k
(decode); what a mode leaves out is not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.engine.types import Arithmetic, KvFormat
from tests.bench.engine import ahead, prefill
from tests.bench.loading import load_whole

MODES = {
    "fa": "flash attention",
    "nocm": "without cooperative matrices",
    "ub2knocm": "the same in batches of 2,048",
    "bs": "sampling on the GPU",
}
SECONDS_A_MODE = 60
PROMPTS = {"p512": 512, "p2048": 2048, "p8192": 8192}
DECODES = {"d0": 16, "d4k": 4096, "d16k": 16_384}
CONTEXT = 16_384 + 512


def ours(path: Path, words: int) -> dict[str, float]:
    """Tokens a second in the fast arithmetic."""
    gpu, engine = load_whole(path, CONTEXT, KvFormat.F16, Arithmetic.FAST)
    found = {place: prefill(engine, count) for place, count in PROMPTS.items()}
    found |= {place: ahead(engine, count, words) for place, count in DECODES.items()}
    engine.close()
    gpu.close()
    return found


def theirs(script: Path, folder: Path, model: str, modes: list[str]) -> dict[str, dict[str, Any]]:
    """The server's figures by mode; a mode that failed is missing."""
    with tempfile.TemporaryDirectory() as out:
        env = {**os.environ, "OUT": out, "MDIR": str(folder)}
        runs = [f"{model}:{mode}" for mode in modes]
        command = [sys.executable, str(script), str(SECONDS_A_MODE * len(runs)), *runs]
        subprocess.run(command, env=env, check=False, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in (Path(out) / "res.jsonl").read_text().splitlines()]
    return {line["cfg"].split(":")[1]: line for line in lines if "error" not in line}


def show(model: str, mine: dict[str, float], other: dict[str, dict[str, Any]]) -> None:
    print(model)
    for place, speed in mine.items():
        against = {mode: statistics.median(line[place]) for mode, line in other.items() if line.get(place)}
        ratios = ", ".join(f"{MODES[mode]} {theirs:.0f} ({speed / theirs:.2f}x)" for mode, theirs in against.items())
        print(f"  {place:7} {speed:9.1f} tok/s   {ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--script", type=Path, default=Path(".anchor/bench.py"))
    parser.add_argument("--modes", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--words", type=int, default=96)
    options = parser.parse_args()
    for model in options.models:
        mine = ours(options.folder / f"{model}.gguf", options.words)
        show(model, mine, theirs(options.script, options.folder, model, options.modes))


if __name__ == "__main__":
    main()
