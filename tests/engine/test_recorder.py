"""Steps recorded ahead change no bit, and are given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options
from app.engine.recorder import MOST_KEPT, Recorder
from app.engine.runner import Runner
from app.engine.types import ColumnClass, KvFormat, Part
from tests.engine.models import Shape, write_model

STEP = ColumnClass.STEP
OPTIONS = Options(context=256, pledge=256 << 20, kv=KvFormat.F32, prompt_columns=64)


@pytest.fixture
def engine(gpu: Gpu, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine.load(
        gpu, GgufFile.open(write_model(tmp_path / "plain.gguf", Shape())), Part(0, 4, embed=True, head=True), OPTIONS
    )
    yield engine
    engine.close()


def recorder_of(engine: Engine) -> Recorder:
    return engine._recorder  # pyright: ignore[reportPrivateUsage]


def kept_by(engine: Engine) -> int:
    return len(recorder_of(engine)._kept)  # pyright: ignore[reportPrivateUsage]


def steps(engine: Engine) -> list[np.ndarray]:
    """Widths in turn, with the head after each."""
    found: list[np.ndarray] = []
    for position, ids in enumerate([[5], [6], [7, 8, 9], [10], [11, 12, 13]]):
        states = engine.tokens(ids, 4 * position, STEP)
        found += [states, *(candidates.logits for candidates in engine.candidates(states))]
    return found


def test_a_step_recorded_ahead_has_the_same_bits(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = steps(engine)
    again = steps(engine)
    monkeypatch.setattr(Recorder, "_taken", lambda *_arguments: None)
    fresh = steps(engine)
    assert all(np.array_equal(a, b) for a, b in zip(ahead, again, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(ahead, fresh, strict=True))


def test_a_step_like_the_last_is_not_recorded_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.decode(5, 0)
    encoded: list[object] = []
    encode = Runner.encode

    def counted(runner: Runner, *arguments: object) -> object:
        encoded.append(arguments)
        return encode(runner, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Runner, "encode", counted)
    engine.decode(6, 1)
    assert len(encoded) == 1, "only the one for the next step"
    engine.tokens([7, 8], 2, STEP)
    assert len(encoded) == 3, "another step and the one after it"


def test_few_recordings_are_kept_and_none_after_the_end(engine: Engine) -> None:
    for width in range(1, 17):
        engine.candidates(engine.tokens([5] * width, 0, STEP))
    assert 0 < kept_by(engine) <= MOST_KEPT
    engine.close()
    assert kept_by(engine) == 0
