"""Which placement suits which matrix: every matvec of a model under several tunings.

``python -m tests.bench.tuning MODEL.gguf`` prints microseconds a launch, launches of one layer kind one
after another over all layers' weights, so that they do not come from a cache.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine, Options
from app.engine.gguf import GgufFile
from app.engine.ops import matvec
from app.engine.ops.matvec import Epilogue, Norm, Tuning
from app.engine.program import Dispatch, compile_program
from app.engine.types import KvFormat, Part


def tunings() -> list[Tuning]:
    shapes = [(32, 1), (64, 1), (128, 1), (32, 2), (32, 4)]
    placements = [(1, 1), (1, 2), (4, 1), (4, 2), (4, 4), (8, 2), (8, 1), (2, 2), (2, 4)]
    return [
        Tuning(lanes, grain, teams, rows, 8, fused)
        for (lanes, grain), (teams, rows), fused in itertools.product(shapes, placements, (True, False))
        if lanes * teams <= 256
    ]


def kinds(engine: Engine, tuning: Tuning) -> dict[str, list[Dispatch]]:
    """The launches of each matrix of a layer, and the head."""
    space, weights, config = engine._space, engine._weights, engine.config  # pyright: ignore[reportPrivateUsage]

    def norm(weights_of: object) -> Norm | None:
        return Norm(weights_of, config.hidden, config.epsilon) if tuning.fused_norm else None  # type: ignore[arg-type]

    found: dict[str, list[Dispatch]] = {"qkv": [], "out": [], "gate_up": [], "down": [], "head": []}
    for layer in weights.layers:
        found["qkv"].append(
            matvec.dispatch(layer.qkv[0].blocks[0], space.hidden, space.qkv, 1, tuning, norm=norm(layer.attention_norm))
        )
        found["out"].append(
            matvec.dispatch(layer.output.blocks[0], space.attended, space.hidden, 1, tuning, epilogue=Epilogue.ADD)
        )
        if tuning.rows > 1:
            found["gate_up"].append(
                matvec.dispatch(
                    layer.gate_up[0].blocks[0],
                    space.hidden,
                    space.inner,
                    1,
                    tuning,
                    norm=norm(layer.ffn_norm),
                    epilogue=Epilogue.SWIGLU,
                )
            )
        found["down"].append(
            matvec.dispatch(layer.down.blocks[0], space.inner, space.hidden, 1, tuning, epilogue=Epilogue.ADD)
        )
    assert weights.head
    assert space.logits
    head = weights.head.blocks[0]
    found["head"] = [matvec.dispatch(head, space.hidden, space.logits, 1, tuning, norm=norm(weights.output_norm))] * 4
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    gpu, file = Gpu.open(), GgufFile.open(options.model)
    layers = read_config(file).layers
    engine = Engine.load(gpu, file, Part(0, layers, embed=True, head=True), Options(512, 1 << 40, KvFormat.F16))
    best: dict[str, list[tuple[float, Tuning]]] = {}
    for tuning in tunings():
        for name, dispatches in kinds(engine, tuning).items():
            if dispatches:
                best.setdefault(name, []).append((microseconds(gpu, engine, dispatches), tuning))
    for name, results in best.items():
        print(name)
        for took, tuning in sorted(results, key=lambda r: r[0])[:6]:
            print(f"  {took:8.2f} us  {tuning}")
    engine.close()
    gpu.close()


def microseconds(gpu: Gpu, engine: Engine, dispatches: list[Dispatch]) -> float:
    runner = engine._runner  # pyright: ignore[reportPrivateUsage]
    program = compile_program(gpu, dispatches * (100 // len(dispatches)))
    runner.run([program])
    took: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        runner.run([program])
        took.append(time.perf_counter() - start)
    return min(took) / len(program.launches) * 1e6


if __name__ == "__main__":
    main()
