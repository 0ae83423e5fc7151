"""Engine logits against the golden files: ``python -m tests.golden [NAME] [--kv f16]`` prints a line a case.

Golden files are llama.cpp's float results (``per_token``: the ten largest logits at each prompt
position, ``greedy``: the continuation, ``mtp_per_token``: the draft block's ten largest). Bounds are
those of ``BOUNDS``, max |difference| over the listed logits; the best token of every position and the
greedy continuation must be equal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options
from app.engine.sampling import choose
from app.engine.types import ColumnClass, Floats, KvFormat, Part, Sampling
from tests.shared import shared_root
from tests.starter import starter_model

DATA = Path(__file__).parent / "data" / "golden"
BOUNDS = {KvFormat.F32: 1e-3, KvFormat.F16: 5e-2}
QUANTS = ("Q4_0", "Q4_1", "Q4_K_M", "Q5_0", "Q5_K_M", "Q6_K", "Q8_0")
MID = "mid-qwen35moe"
NANO = "nano-qwen35moe-float"
UNSTABLE_ROWS = 2
"""Of a random mixture's positions these many may route otherwise, where two experts are as good as equal."""


@dataclass(frozen=True)
class Outcome:
    """How one case came out: each position's worst logit, where the best token differs, the continuation.

    ``drafts`` are the draft block's worst logits, ``unstable`` how many positions may be far off.
    """

    case: str
    errors: list[float]
    wrong_best: int
    greedy: list[int]
    expected: list[int]
    drafts: list[float]
    unstable: int

    def __str__(self) -> str:
        greedy = "equal" if self.greedy == self.expected else "DIFFERS"
        drafts = f", drafts {max(self.drafts):.1e}" if self.drafts else ""
        figures = f"worst {max(self.errors):.1e}, wrong best {self.wrong_best}, greedy {greedy}{drafts}"
        return f"{self.case:14} {len(self.errors):3} positions, {figures}"

    def passes(self, kv: KvFormat) -> bool:
        off = [sum(e > BOUNDS[kv] for e in errors) for errors in (self.errors, self.drafts)]
        return max(off) <= self.unstable and self.wrong_best <= self.unstable and self.greedy == self.expected


def golden_models() -> dict[str, Path]:
    """Golden files this checkout can run, with their models; some lie in a folder ``shared`` beside it."""
    models = {name: DATA / f"{name}.gguf" for name in ("tiny-qwen3", "tiny-qwen35", "tiny-qwen35moe")}
    models["smollm2-135m-q4_1-float"] = starter_model()
    shared = shared_root() / "models"
    models[NANO] = shared / "nano-qwen35moe-Q8_0.gguf"
    models |= {f"{MID}-{quant}": shared / f"{MID}-{quant}.gguf" for quant in QUANTS}
    return {name: path for name, path in models.items() if path.exists()}


@cache
def cases_of(name: str) -> list[dict[str, Any]]:
    if not name.startswith(MID):
        return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    entries = json.loads((DATA / f"{MID}-quants.json").read_text(encoding="utf-8"))
    entry = next(e for e in entries if e["quant"] == name.removeprefix(f"{MID}-"))
    return [{"id": entry["quant"], "prompt_ids": entry["prompt_ids"], **entry["float"]}]


def load(gpu: Gpu, path: Path, kv: KvFormat) -> list[Engine]:
    """The whole model in one part."""
    file = GgufFile.open(path)
    config = read_config(file)
    part = Part(0, config.layers, embed=True, head=True, draft=config.drafts)
    return [Engine.load(gpu, file, part, Options(512, 2 << 30, kv))]


def load_cut(gpu: Gpu, path: Path, kv: KvFormat, cut: int) -> list[Engine]:
    """The model in two parts, as two devices would hold it: the first also has the head and the draft block."""
    file = GgufFile.open(path)
    config = read_config(file)
    options = Options(512, 2 << 30, kv)
    return [
        Engine.load(gpu, file, Part(0, cut, embed=True, head=True, draft=config.drafts), options),
        Engine.load(gpu, file, Part(cut, config.layers), options),
    ]


def run_case(
    engines: list[Engine], case: dict[str, Any], kind: ColumnClass, rounded: bool = False, unstable: int = 0
) -> Outcome:
    """Runs a prompt and its greedy continuation; ``rounded`` passes states on as f16, as a room does."""
    ids: list[int] = case["prompt_ids"]
    states = forward(engines, ids, 0, kind, rounded)
    errors, wrong = _compare(engines[0], states, case)
    drafts = _compare_drafts(engines[0], states, case)
    tokens = [engines[0].candidates(states[-1:])[0].best]
    while len(tokens) < len(case["greedy"]):
        state = forward(engines, tokens[-1:], len(ids) + len(tokens) - 1, ColumnClass.STEP, rounded)
        tokens.append(choose(engines[0].candidates(state)[0], Sampling(), 0))
    return Outcome(str(case["id"]), errors, wrong, tokens, case["greedy"], drafts, unstable)


def forward(engines: list[Engine], ids: list[int], position: int, kind: ColumnClass, rounded: bool) -> Floats:
    """States after all parts, rounded to f16 at every hop and on the way back."""
    states = engines[0].tokens(ids, position, kind)
    for engine in engines[1:]:
        states = engine.hidden(_halved(states) if rounded else states, position, kind)
    return _halved(states) if rounded else states


def _halved(states: Floats) -> Floats:
    return states.astype(np.float16).astype(np.float32)


def _compare(head: Engine, states: Floats, case: dict[str, Any]) -> tuple[list[float], int]:
    errors: list[float] = []
    wrong = 0
    for start in range(0, len(states), 16):
        for row, (_, expected) in zip(head.logits(states[start : start + 16]), case["per_token"][start:], strict=False):
            errors.append(_error(row, expected))
            wrong += int(row.argmax()) != expected[0][0]
    return errors, wrong


def _compare_drafts(head: Engine, states: Floats, case: dict[str, Any]) -> list[float]:
    """Row p stands on the trunk's state of p - 1, row 0 on zeros."""
    if not head.part.draft:
        return []
    before = np.concatenate([np.zeros_like(states[:1]), states[:-1]])
    ids, expected = case["prompt_ids"], case["mtp_per_token"]
    errors: list[float] = []
    for start in range(0, len(ids), 16):
        rows = head.draft_logits(ids[start : start + 16], before[start : start + 16], start)
        errors += [_error(row, top) for row, (_, top) in zip(rows, expected[start:], strict=False)]
    return errors


def _error(row: Floats, expected: list[tuple[int, float]]) -> float:
    return max(abs(float(row[token]) - value) for token, value in expected)


def outcomes(gpu: Gpu, name: str, kv: KvFormat, kind: ColumnClass) -> Iterator[Outcome]:
    engines = load(gpu, golden_models()[name], kv)
    unstable = UNSTABLE_ROWS if name.startswith(MID) else 0
    try:
        yield from (run_case(engines, case, kind, unstable=unstable) for case in cases_of(name))
    finally:
        for engine in engines:
            engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(golden_models()))
    parser.add_argument("--kv", type=KvFormat, choices=list(BOUNDS), default=KvFormat.F32)
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
