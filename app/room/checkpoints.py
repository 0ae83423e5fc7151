"""Which computed states a model host keeps, and which of them a new prompt goes on from (spec: rooms §15.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from app.room.held import Held

LAST_SLOT = 65_534
SHORTEST_PIN = 1_024
KIN = 4
WORTH_SAVING = 64
"""Fewer tokens past what is kept already are read again sooner than a copy is made."""


class Keep(Enum):
    """Why a state is kept: answers in turn, a fixed start of all prompts, the start and the end of a last question."""

    ANSWER = "answer"
    PIN = "pin"
    TURN = "turn"
    ASKED = "asked"


@dataclass(frozen=True)
class Mark:
    """A place in a prompt whose state is to be kept when it is read."""

    position: int
    keep: Keep


@dataclass(frozen=True)
class Checkpoint:
    """A saved state: the tokens it stands after, and the slot every device keeps its part in."""

    slot: int
    held: Held
    keep: Keep
    used: int = 0

    @property
    def ids(self) -> tuple[int, ...]:
        return self.held.fed.ids

    def start(self, ids: Sequence[int], *, hybrid: bool) -> int:
        """How much of ``ids`` it can go on from: a recurrent model only from its end, others from where it pays."""
        common = min(self.held.fed.common(ids), len(ids) - 1)
        return common if common == self.held.end or (not hybrid and common > WORTH_SAVING) else 0


def counted_states(answers: int) -> int:
    """What a deal counts: states of one conversation, its answers and one of every other kind. More are a gift."""
    return answers + len(Keep) - 1 if answers else 0


class Checkpoints:
    """``answers`` is how many of those are kept beside one for each further lane; 0 turns all checkpoints off.

    Of the other kinds one is kept for each of ``lanes``.
    """

    def __init__(self, answers: int, lanes: int = 1) -> None:
        self.answers = answers
        self._lanes = lanes
        self.kept: list[Checkpoint] = []
        self._slot = 0
        self._clock = 0

    def next_slot(self) -> int:
        """A number no device has used in this room, as far as is known."""
        self._slot = self._slot % LAST_SLOT + 1
        return self._slot

    def taken(self, slots: Iterable[int]) -> None:
        """Numbers that some device still uses."""
        self._slot = max((self._slot, *slots))

    def again(self, ids: Sequence[int], keep: Keep) -> bool:
        """Whether the state after exactly these tokens is kept already; a pin stays one, or becomes one."""
        found = next((kept for kept in self.kept if kept.ids == tuple(ids)), None)
        if found is None:
            return False
        touched = self._touched(found)
        if keep is Keep.PIN:
            self.kept = [replace(kept, keep=Keep.PIN) if kept is touched else kept for kept in self.kept]
        return True

    def add(self, checkpoint: Checkpoint, but: int = 0) -> list[int]:
        """Keeps one more and returns the slots it drives out, slot ``but`` never."""
        out = self._driven_out(checkpoint, but)
        self.forget(out)
        self._clock += 1
        self.kept.append(replace(checkpoint, used=self._clock))
        return out

    def _driven_out(self, new: Checkpoint, but: int) -> list[int]:
        """Sooner another state of the same conversation than the last one of another."""
        alike = [kept for kept in self.kept if kept.keep is new.keep and kept.slot != but]
        alike.sort(key=lambda kept: (not _is_kin(kept, new), kept.used))
        room = self._lanes - 1 + (self.answers - 1 if new.keep is Keep.ANSWER else 0)
        return [kept.slot for kept in alike[: max(len(alike) - room, 0)]]

    def best(self, ids: Sequence[int], longer_than: int = 0, but: int = 0, *, hybrid: bool = True) -> Checkpoint | None:
        """The one that most of ``ids`` can go on from, slot ``but`` left out."""
        lengths = {kept.slot: kept.start(ids, hybrid=hybrid) for kept in self.kept if kept.slot != but}
        fitting = [kept for kept in self.kept if lengths.get(kept.slot, 0) > longer_than]
        found = max(fitting, key=lambda kept: lengths[kept.slot], default=None)
        return self._touched(found) if found is not None else None

    def reach(self, ids: Sequence[int], *, hybrid: bool) -> int:
        """How much of ``ids`` some state can go on from."""
        return max((kept.start(ids, hybrid=hybrid) for kept in self.kept), default=0)

    def oldest(self, but: int = 0) -> Checkpoint | None:
        """The one to give up first when memory runs short: pins last, slot ``but`` never."""
        others = (kept for kept in self.kept if kept.slot != but)
        return min(others, key=lambda kept: (kept.keep is Keep.PIN, kept.used), default=None)

    def forget(self, slots: Sequence[int]) -> None:
        self.kept = [kept for kept in self.kept if kept.slot not in slots]

    def worth(self, marks: Sequence[Mark], ids: Sequence[int], start: int) -> tuple[Mark, ...]:
        """The marks past ``start`` that save enough reading over what is kept before them."""
        found: list[Mark] = []
        for mark in sorted(marks, key=lambda mark: mark.position):
            kept = (k.held.end for k in self.kept if k.held.end <= mark.position and _begins(k.held, ids))
            known = max(max(kept, default=0), found[-1].position if found else 0)
            if start < mark.position < len(ids) - 1 and mark.position - known >= WORTH_SAVING:
                found.append(mark)
        return tuple(found)

    def _touched(self, checkpoint: Checkpoint) -> Checkpoint:
        self._clock += 1
        used = replace(checkpoint, used=self._clock)
        self.kept = [used if kept is checkpoint else kept for kept in self.kept]
        return used


def _is_kin(kept: Checkpoint, new: Checkpoint) -> bool:
    """Whether both are of one conversation: a quarter of the words is more than what programs begin alike."""
    return KIN * kept.held.fed.common(new.ids) >= kept.held.end


def _begins(held: Held, ids: Sequence[int]) -> bool:
    return held.fed.common(ids) == held.end


def live_start(held: Held, ids: Sequence[int], *, hybrid: bool) -> int:
    """How much of ``ids`` the live caches can go on from; the last id is always computed again.

    A recurrent state is taken back over its last step at most, rows of keys and values anywhere.
    """
    start = min(held.fed.common(ids), len(ids) - 1)
    return start if not hybrid or start >= held.floor else 0
