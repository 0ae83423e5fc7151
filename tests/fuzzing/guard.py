"""One input through one decoder: bounded in time and memory, its outcome named."""

from __future__ import annotations

import signal
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType

from tests.fuzzing.mutate import damaged

HANG_S = 5.0
"""CPU seconds, so that a busy machine finds no hang where there is none."""
FLOOR = 512 * 1024
RATIO = 128
FEWER = 32
"""Of what lies beside an input: a list of bytes takes eight times their number, and twice that while it grows."""
MEASURED_EVERY = 64


class Fault(AssertionError):
    """A decoder did what it must not do."""


class _Hang(BaseException):
    """Not to be caught by what hangs."""


@dataclass(frozen=True)
class Target:
    """A decoder. ``errors`` are those it documents; ``grammar`` makes inputs that get past its first checks.

    ``beside``: bytes that it may read past those of an input.
    """

    name: str
    corpus: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...] = ()
    grammar: Callable[[Random], bytes] | None = None
    beside: int = 0


@dataclass
class Tally:
    """What came of a stretch of inputs. ``largest`` and ``slowest`` with the input's length in bytes."""

    inputs: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    largest: tuple[int, int] = (0, 0)
    slowest: tuple[float, int] = (0.0, 0)

    def add(self, other: Tally) -> None:
        self.inputs += other.inputs
        self.seconds = max(self.seconds, other.seconds)
        self.outcomes += other.outcomes
        self.largest = max(self.largest, other.largest)
        self.slowest = max(self.slowest, other.slowest)


def one(target: Target, data: bytes) -> str:
    """The outcome's name. Raises Fault for a hang and for any error that is not documented."""
    try:
        with _limited(HANG_S):
            value = target.read(data)
    except target.errors as error:
        return type(error).__name__
    except _Hang:
        raise Fault(f"{target.name}: no end within {HANG_S} s of CPU time") from None
    except RecursionError as error:
        raise Fault(f"{target.name}: RecursionError") from error
    except Exception as error:
        raise Fault(f"{target.name}: {type(error).__name__}: {error}") from error
    return "nothing" if value is None else "taken"


def measured(target: Target, data: bytes) -> tuple[str, int]:
    """The outcome, and the most bytes that were allocated at a time. A small input may not make a big object.

    What is too much is measured once more: now and then a table of the interpreter's own grows, nobody's fault.
    """
    most = FLOOR + RATIO * len(data) + FEWER * target.beside
    outcome, peak = _traced(target, data)
    if peak > most:
        outcome, peak = _traced(target, data)
    if peak > most:
        raise Fault(f"{target.name}: {len(data)} bytes became {peak}")
    return outcome, peak


def _traced(target: Target, data: bytes) -> tuple[str, int]:
    tracemalloc.start()
    try:
        return one(target, data), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def stretch(target: Target, inputs: int, rng: Random, note: Callable[[bytes], None] = lambda _data: None) -> Tally:
    """Runs ``inputs`` inputs; ``note`` is told each before. Raises Fault with the input as its second argument."""
    corpus, tally, began = target.corpus(), Tally(inputs), time.perf_counter()
    for number in range(inputs):
        data = next_input(target, corpus, rng)
        note(data)
        try:
            _count(tally, target, data, measure=number % MEASURED_EVERY == 0)
        except Fault as fault:
            raise Fault(str(fault), data.hex()) from fault
    tally.seconds = time.perf_counter() - began
    return tally


def next_input(target: Target, corpus: Sequence[bytes], rng: Random) -> bytes:
    if target.grammar is not None and rng.random() < 0.5:
        made = target.grammar(rng)
        return damaged(rng, [made]) if rng.random() < 0.2 else made
    return damaged(rng, corpus)


def _count(tally: Tally, target: Target, data: bytes, *, measure: bool) -> None:
    start = time.process_time()
    if measure:
        outcome, peak = measured(target, data)
        tally.largest = max(tally.largest, (peak, len(data)))
    else:
        outcome = one(target, data)
        tally.slowest = max(tally.slowest, (time.process_time() - start, len(data)))
    tally.outcomes[outcome] += 1


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _expired(_number: int, _frame: FrameType | None) -> None:
    raise _Hang


@contextmanager
def armed() -> Generator[None]:
    """Inputs may be run inside: the process's timer signal is ours meanwhile."""
    before = signal.signal(signal.SIGVTALRM, _expired)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)
