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
from app.engine.recorder import MOST_KEPT, WORTH_RECORDING, Recorder
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
    known = recorder_of(engine)._known  # pyright: ignore[reportPrivateUsage]
    return sum(kind.ahead is not None for kind in known.values())


def steps(engine: Engine) -> list[np.ndarray]:
    """Widths in turn, with the head after each."""
    found: list[np.ndarray] = []
    for position, ids in enumerate([[5], [6], [7, 8, 9], [10], [11, 12, 13]]):
        states = engine.tokens(ids, 4 * position, STEP)
        found += [states, *(candidates.logits for candidates in engine.candidates(states))]
    return found


def test_a_step_recorded_ahead_has_the_same_bits(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(WORTH_RECORDING):
        steps(engine)
    ahead = steps(engine)
    monkeypatch.setattr(Recorder, "_is_worth", lambda *_arguments: False)
    recorder_of(engine).forget()
    fresh = steps(engine)
    assert all(np.array_equal(a, b) for a, b in zip(ahead, fresh, strict=True))


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every recording that is made."""
    made: list[object] = []
    encode = Runner.encode

    def counted(runner: Runner, *arguments: object) -> object:
        made.append(arguments)
        return encode(runner, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Runner, "encode", counted)
    return made


def test_a_step_that_comes_often_is_recorded_ahead(engine: Engine, encoded: list[object]) -> None:
    for position in range(WORTH_RECORDING):
        engine.decode(5, position)
    assert len(encoded) == WORTH_RECORDING + 1, "the last time also for the next one"
    engine.decode(6, WORTH_RECORDING)
    assert len(encoded) == WORTH_RECORDING + 2, "only the one for the next step"
    engine.tokens([7, 8], WORTH_RECORDING + 1, STEP)
    assert len(encoded) == WORTH_RECORDING + 3, "another kind of step, for the first time"


def test_recordings_are_hardly_ever_thrown_away(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not submitted leaks in the library below."""
    discarded: list[object] = []
    monkeypatch.setattr(Runner, "discard", lambda _runner, encoded: discarded.append(encoded))
    for _ in range(WORTH_RECORDING + 1):
        for width in range(1, 17):
            engine.candidates(engine.tokens([5] * width, 0, STEP))
    assert 0 < kept_by(engine) <= MOST_KEPT
    assert not discarded


def test_none_is_kept_after_the_end(engine: Engine) -> None:
    for position in range(WORTH_RECORDING):
        engine.decode(5, position)
    assert kept_by(engine) == 1
    engine.close()
    assert kept_by(engine) == 0


def test_a_kind_that_stopped_coming_makes_room(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.recorder.MOST_KEPT", 1)
    monkeypatch.setattr("app.engine.recorder.FORGOTTEN_AFTER", 5)
    for position in range(WORTH_RECORDING):
        engine.decode(5, position)
    for _ in range(WORTH_RECORDING + 5):
        engine.tokens([5, 6], 0, STEP)
    assert kept_by(engine) == 1
    known = recorder_of(engine)._known  # pyright: ignore[reportPrivateUsage]
    assert next(kind for kind in known.values() if kind.ahead is not None).runs > WORTH_RECORDING
