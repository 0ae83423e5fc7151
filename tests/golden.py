"""Engine logits against the golden files: ``python -m tests.golden [NAME] [--kv f16]`` prints a line a case.

Golden files are llama.cpp's float results (``per_token``: the ten largest logits at each prompt
position, ``greedy``: the continuation). Bounds are those of ``BOUNDS``, max |difference| over the
listed logits; the best token of every position and the greedy continuation must be equal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine, Options
from app.engine.gguf import GgufFile
from app.engine.sampling import choose
from app.engine.types import ColumnClass, Floats, KvFormat, Part, Sampling
from tests.starter import starter_model

DATA = Path(__file__).parent / "data" / "golden"
BOUNDS = {KvFormat.F32: 1e-3, KvFormat.F16: 5e-2}


@dataclass(frozen=True)
class Outcome:
    """How one case came out: the worst logit, positions whose best token differs, and the continuation."""

    case: str
    positions: int
    worst: float
    wrong_best: int
    greedy: list[int]
    expected: list[int]

    def __str__(self) -> str:
        greedy = "equal" if self.greedy == self.expected else "DIFFERS"
        figures = f"worst {self.worst:.1e}, wrong best {self.wrong_best}, greedy {greedy}"
        return f"{self.case:14} {self.positions:3} positions, {figures}"

    def passes(self, kv: KvFormat) -> bool:
        return self.worst <= BOUNDS[kv] and not self.wrong_best and self.greedy == self.expected


def golden_models() -> dict[str, Path]:
    """Golden files this checkout can run, with their models."""
    return {"tiny-qwen3": DATA / "tiny-qwen3.gguf", "smollm2-135m-q4_1-float": starter_model()}


def cases_of(name: str) -> list[dict[str, Any]]:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def load(gpu: Gpu, path: Path, kv: KvFormat) -> list[Engine]:
    """The whole model in one part."""
    file = GgufFile.open(path)
    layers = read_config(file).layers
    return [Engine.load(gpu, file, Part(0, layers, embed=True, head=True), Options(512, 2 << 30, kv))]


def load_cut(gpu: Gpu, path: Path, kv: KvFormat, cut: int) -> list[Engine]:
    """The model in two parts, as two devices would hold it: the first also has the head."""
    file = GgufFile.open(path)
    layers = read_config(file).layers
    options = Options(512, 2 << 30, kv)
    return [
        Engine.load(gpu, file, Part(0, cut, embed=True, head=True), options),
        Engine.load(gpu, file, Part(cut, layers), options),
    ]


def run_case(engines: list[Engine], case: dict[str, Any], kind: ColumnClass, rounded: bool = False) -> Outcome:
    """Runs a prompt and its greedy continuation; ``rounded`` passes states on as f16, as a room does."""
    ids: list[int] = case["prompt_ids"]
    states = forward(engines, ids, 0, kind, rounded)
    worst, wrong = _compare(engines[0], states, case)
    tokens = [engines[0].candidates(states[-1:])[0].best]
    while len(tokens) < len(case["greedy"]):
        state = forward(engines, tokens[-1:], len(ids) + len(tokens) - 1, ColumnClass.STEP, rounded)
        tokens.append(choose(engines[0].candidates(state)[0], Sampling(), 0))
    return Outcome(case["id"], len(ids), worst, wrong, tokens, case["greedy"])


def forward(engines: list[Engine], ids: list[int], position: int, kind: ColumnClass, rounded: bool) -> Floats:
    """States after all parts, rounded to f16 at every hop and on the way back."""
    states = engines[0].tokens(ids, position, kind)
    for engine in engines[1:]:
        states = engine.hidden(_halved(states) if rounded else states, position, kind)
    return _halved(states) if rounded else states


def _halved(states: Floats) -> Floats:
    return states.astype(np.float16).astype(np.float32)


def _compare(head: Engine, states: Floats, case: dict[str, Any]) -> tuple[float, int]:
    worst, wrong = 0.0, 0
    for start in range(0, len(states), 16):
        for row, (_, expected) in zip(head.logits(states[start : start + 16]), case["per_token"][start:], strict=False):
            worst = max(worst, *(abs(float(row[token]) - value) for token, value in expected))
            wrong += int(row.argmax()) != expected[0][0]
    return worst, wrong


def outcomes(gpu: Gpu, name: str, kv: KvFormat, kind: ColumnClass) -> Iterator[Outcome]:
    engines = load(gpu, golden_models()[name], kv)
    try:
        yield from (run_case(engines, case, kind) for case in cases_of(name))
    finally:
        for engine in engines:
            engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(golden_models()))
    parser.add_argument("--kv", type=KvFormat, default=KvFormat.F32)
    options = parser.parse_args()
    gpu, failed = Gpu.open(), 0
    for name in options.names:
        for kind in ColumnClass:
            for o in outcomes(gpu, name, options.kv, kind):
                failed += not o.passes(options.kv)
                print(f"{'ok  ' if o.passes(options.kv) else 'FAIL'} {name} {kind.value:6} {o}")
    gpu.close()
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
