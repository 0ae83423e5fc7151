"""Frames over several data channels at once: striping, doubling, order and gaps (spec: rooms §5.2-5.4)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.core.clock import Clock
from app.room.frame import Frame
from app.room.slices import Slice, cut, is_spec, read_control, read_slice

DOUBLED_SLICES = 3
BACKSTOP_S = 60.0
SHORT_WAIT_S = 5.0
RECENT_CLOSE_S = 15.0
CROWDED_PARTIALS = 64
STALE_PARTIAL_S = 30.0
MAX_PARTIALS = 256
MAX_HELD_BYTES = 64 * 2**20

# Timers may fire a hair before the instant they were set for.
_EARLY = 1e-6


class Outlet(Protocol):
    """One open data channel as the sender sees it."""

    @property
    def backlog(self) -> int:
        """Bytes accepted and not yet sent."""
        ...

    def send(self, data: bytes) -> bool:
        """Whether the channel took the slice."""
        ...


Repeat = Callable[[Outlet, Callable[[], None]], None]
"""Told which channel took a slice and how to send its copy; decides when, and whether that is needed."""


def _at_once(_first: Outlet, copy: Callable[[], None]) -> None:
    copy()


class WireSender:
    """Numbers frames and spreads their slices. Frames of up to ``doubled`` go twice, as ``repeat`` says."""

    def __init__(self, doubled: int = DOUBLED_SLICES, repeat: Repeat = _at_once) -> None:
        self._doubled = doubled
        self._repeat = repeat
        self._turn = 0
        self.next_id = 1
        self.copies = 0

    def send(self, frame: Frame, outlets: Sequence[Outlet]) -> bool:
        """Whether the frame went out; False without ``outlets``, the open channels in the order attached.

        Raises ProtocolError for control words the header cannot hold; no frame id is used up then.
        """
        if not outlets:
            return False
        slices = cut(frame, self.next_id)
        self.next_id += 1
        twice = len(slices) <= self._doubled and len(outlets) > 1
        for data in slices:
            first = self._give(data, outlets, None)
            if twice and first is not None:
                self._repeat(first, functools.partial(self._copy, data, outlets, first))
        return True

    def _copy(self, data: bytes, outlets: Sequence[Outlet], first: Outlet) -> None:
        self.copies += self._give(data, outlets, first) is not None

    def _give(self, data: bytes, outlets: Sequence[Outlet], avoid: Outlet | None) -> Outlet | None:
        chosen = self._least_loaded(outlets, avoid)
        if chosen.send(data):
            return chosen
        return next((other for other in outlets if other is not chosen and other.send(data)), None)

    def _least_loaded(self, outlets: Sequence[Outlet], avoid: Outlet | None) -> Outlet:
        start = self._turn % len(outlets)
        self._turn += 1
        turned = [*outlets[start:], *outlets[:start]]
        return min((outlet for outlet in turned if outlet is not avoid), key=lambda outlet: outlet.backlog)


@dataclass
class _Channel:
    lossy: bool
    highest_id: int = 0


@dataclass
class _Partial:
    first: Slice
    since: float
    payloads: dict[int, bytes] = field(default_factory=dict[int, bytes])


class WireReceiver:
    """Joins slices and hands frames over in id order, each once; ``held_bytes`` of them wait.

    A caller feeds what channels bring and, when ``deadline`` has passed, calls ``tick``; each call
    returns the frames that became due.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._channels: dict[Hashable, _Channel] = {}
        self._last_closed = float("-inf")
        self._gap_id = 0
        self.held_bytes = 0
        self._partial: dict[int, _Partial] = {}
        self._waiting: dict[int, Frame] = {}
        self.expect = 1
        self.skipped = 0
        self.deadline: float | None = None

    @property
    def waiting(self) -> list[int]:
        """Ids of whole frames that wait for an earlier one."""
        return sorted(self._waiting)

    @property
    def partial(self) -> list[int]:
        """Ids of frames of which slices are missing."""
        return sorted(self._partial)

    def attach(self, channel: Hashable, lossy: bool = False) -> None:
        self._channels[channel] = _Channel(lossy)

    def closed(self, channel: Hashable) -> list[Frame]:
        """A channel has ended: frames that only it could have brought are given up."""
        if self._channels.pop(channel, None) is None:
            return []
        self._last_closed = self._clock.now()
        self.deadline = None
        return self._due()

    def receive(self, channel: Hashable, data: bytes) -> list[Frame]:
        """Takes one slice; anything that is not a fitting slice is dropped."""
        piece = read_slice(data)
        if piece is None:
            return []
        state = self._channels.get(channel)
        if state is not None:
            state.highest_id = max(state.highest_id, piece.frame_id)
        if piece.frame_id >= self.expect and piece.frame_id not in self._waiting:
            self._add(piece)
        return self._due()

    def tick(self) -> list[Frame]:
        """Gives up the awaited frame once the deadline has passed."""
        if self.deadline is None or self._clock.now() + _EARLY < self.deadline:
            return []
        self.deadline = None
        if self._waiting:
            self._skip_to(min(self._waiting))
        return self._due()

    def _add(self, piece: Slice) -> None:
        partial = self._partial.get(piece.frame_id) or self._open(piece)
        if partial is None or partial.first.total != piece.total or piece.index in partial.payloads:
            return
        if self.held_bytes + len(piece.payload) > MAX_HELD_BYTES:
            return
        partial.payloads[piece.index] = piece.payload
        self.held_bytes += len(piece.payload)
        if len(partial.payloads) == piece.count:
            del self._partial[piece.frame_id]
            self._waiting[piece.frame_id] = _joined(partial, piece)

    def _open(self, piece: Slice) -> _Partial | None:
        if len(self._partial) > CROWDED_PARTIALS:
            self._forget_stale()
        if len(self._partial) >= MAX_PARTIALS:
            return None
        partial = self._partial[piece.frame_id] = _Partial(piece, self._clock.now())
        return partial

    def _forget_stale(self) -> None:
        limit = self._clock.now() - STALE_PARTIAL_S
        for frame_id in [key for key, partial in self._partial.items() if partial.since < limit]:
            self._drop_partial(frame_id)

    def _drop_partial(self, frame_id: int) -> None:
        partial = self._partial.pop(frame_id, None)
        if partial is not None:
            self.held_bytes -= sum(map(len, partial.payloads.values()))

    def _due(self) -> list[Frame]:
        due = self._in_order()
        while self._waiting and self._provably_lost(self.expect):
            self._skip_to(self.expect + 1)
            due += self._in_order()
        self._arm()
        return due

    def _in_order(self) -> list[Frame]:
        due: list[Frame] = []
        while self.expect in self._waiting:
            frame = self._waiting.pop(self.expect)
            self.held_bytes -= len(frame.payload)
            due.append(frame)
            self.expect += 1
        return due

    def _provably_lost(self, frame_id: int) -> bool:
        """Ordered channels never bring an older frame after a newer one."""
        return all(not state.lossy and state.highest_id > frame_id for state in self._channels.values())

    def _skip_to(self, frame_id: int) -> None:
        self.skipped += frame_id - self.expect
        self.expect = frame_id
        for stale in [key for key in self._partial if key < frame_id]:
            self._drop_partial(stale)

    def _arm(self) -> None:
        if not self._waiting:
            self.deadline = None
        elif self.deadline is None or self._gap_id != self.expect:
            self._gap_id = self.expect
            self.deadline = self._clock.now() + self._patience()

    def _patience(self) -> float:
        recent = self._clock.now() - self._last_closed < RECENT_CLOSE_S
        lossy = any(state.lossy for state in self._channels.values())
        return SHORT_WAIT_S if recent or lossy else BACKSTOP_S


def _joined(partial: _Partial, last: Slice) -> Frame:
    """Slots come from the first slice received, all else from the last, as the published receiver does."""
    first = partial.first
    payload = b"".join(partial.payloads[index] for index in range(last.count))
    control = read_control(last.flags, first.save, first.load, first.drop)
    return Frame(last.kind, last.position, last.columns, payload, is_spec(last.flags), control)
