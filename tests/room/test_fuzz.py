"""Every decoder under a few thousand damaged inputs; ``python -m tests.bench.fuzz`` runs a million."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from random import Random

import pytest

from tests.fuzzing.guard import Fault, Target, armed, measured, one, stretch
from tests.fuzzing.targets import TARGETS

INPUTS = 3_000


@pytest.fixture(autouse=True)
def _guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Decoders of files move POOLED_HOME; it comes back afterwards.
    monkeypatch.setenv("POOLED_HOME", "")
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    with armed():
        yield
    logging.disable(before)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_damaged_input_ends_as_documented(name: str) -> None:
    tally = stretch(TARGETS[name], INPUTS, Random(7))
    assert tally.inputs == INPUTS
    assert len(tally.outcomes) > 1, "inputs are both taken and refused"


def test_an_undocumented_error_is_a_fault() -> None:
    broken = Target("broken", lambda: [b"ab"], lambda data: data[1], (ValueError,))
    with pytest.raises(Fault, match="IndexError") as found:
        stretch(broken, 500, Random(1))
    assert len(bytes.fromhex(found.value.args[1])) < 2


def test_a_hang_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzzing.guard.HANG_S", 0.05)

    def endless(_data: bytes) -> None:
        while True:
            pass

    with pytest.raises(Fault, match="no end"):
        one(Target("endless", lambda: [b""], endless), b"")


def test_a_big_object_of_a_small_input_is_a_fault() -> None:
    with pytest.raises(Fault, match="became"):
        measured(Target("greedy", lambda: [b""], lambda _data: bytes(1 << 20)), b"x")
