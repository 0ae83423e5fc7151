"""The model host's view of computing: its own layers, then every device of the chain, then back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.core.clock import Clock
from app.engine.types import Candidates, ColumnClass, Floats
from app.room import messages as m
from app.room.drafts import chain_verifies
from app.room.frame import Control, Frame, FrameKind
from app.room.halves import HalfRangeError, looks_bad, pack_halves, unpack_halves
from app.room.laps import LapFailed, LapKey, Laps, LapStats
from app.room.meta import Meta
from app.room.ports import Compute, Link

COLUMNS = 16
COLUMNS_ALONE = 512
NOT_A_NUMBER = "Try another model file, or run the model on one device."


@dataclass
class Hop:
    """One device of the chain as the model host tracks it."""

    name: str
    id: str
    meta: Meta
    load: m.Load
    link: Link | None
    ready: bool = False
    relinking: bool = False
    progress: float = 0.0
    timings: m.Timings = field(default_factory=m.Timings)
    rtt: float = 0.0

    @property
    def layers(self) -> int:
        return self.load.range[1] - self.load.range[0]

    @property
    def here(self) -> bool:
        return self.link is not None and self.link.open

    @property
    def whole(self) -> bool:
        return self.here and self.ready and not self.relinking


class Chain:
    """Runs columns through all layers. An empty chain is a model host that holds everything."""

    def __init__(self, compute: Compute, hidden: int, hops: Sequence[Hop], clock: Clock) -> None:
        self.hops = tuple(hops)
        self.laps = Laps(clock)
        self.stats = LapStats()
        self._ended: LapFailed | None = None
        self._compute = compute
        self._hidden = hidden
        self._clock = clock

    @property
    def whole(self) -> bool:
        return all(hop.whole for hop in self.hops)

    @property
    def alone(self) -> bool:
        return not self.hops

    def width(self, kind: ColumnClass) -> int:
        """Most columns of one frame; step columns travel together only where every device verifies."""
        if self.alone:
            return COLUMNS_ALONE if kind is ColumnClass.PROMPT else COLUMNS
        if kind is ColumnClass.PROMPT or chain_verifies(hop.meta for hop in self.hops):
            return COLUMNS
        return 1

    async def send(self, ids: Sequence[int], position: int, kind: ColumnClass) -> asyncio.Future[Floats]:
        """Runs the own layers and sends the columns on; the future is their hidden states back here."""
        states = await self._compute.tokens(ids, position, kind)
        self._still_dealt()
        if looks_bad(states):
            raise LapFailed("This device computed numbers that are none.", NOT_A_NUMBER, repairable=False)
        if self.alone:
            return _known(states)
        return self._launch(states, position, kind)

    def _launch(self, states: Floats, position: int, kind: ColumnClass) -> asyncio.Future[Floats]:
        columns = states.shape[0]
        batch = kind is ColumnClass.PROMPT or columns > 1
        frame = Frame(
            kind=FrameKind.HIDDEN_BATCH if batch else FrameKind.HIDDEN,
            position=position,
            columns=columns,
            payload=_packed(states),
            spec=batch and kind is ColumnClass.STEP,
            control=Control(reset=position == 0),
        )
        first = self.hops[0].link
        missing = next((hop.name for hop in self.hops if not hop.here), "")
        if missing or first is None:
            raise LapFailed(f"{missing} is not here.")
        slowest = max(hop.rtt for hop in self.hops)
        lap = self.laps.open(LapKey(position, batch), self.stats.timeout(slowest, batch=batch))
        first.send_frame(frame)
        return lap

    async def step(self, token: int, position: int) -> Candidates:
        """One word: through all layers and the head."""
        began = self._clock.now()
        if self.alone:
            candidates = await self._compute.decode(token, position)
            self._still_dealt()
            took = self._clock.now() - began
            self.stats = self.stats.measured(took, took)
            return candidates
        lap = await self.send([token], position, ColumnClass.STEP)
        own = self._clock.now() - began
        states = await lap
        candidates = (await self._compute.candidates(states[-1:]))[0]
        self.stats = self.stats.measured(self._clock.now() - began, own)
        return candidates

    async def reset(self) -> None:
        """Forgets this device's state; the others forget with the frame at position 0."""
        await self._compute.reset()

    def returned(self, frame: Frame, sender: str) -> bool:
        """Takes a frame from the last device; False when it is nobody's."""
        if not frame.kind.is_return or not self.hops or sender != self.hops[-1].id:
            return False
        try:
            states = unpack_halves(frame.payload, self._hidden)
        except HalfRangeError:
            return False
        if states.shape[0] != max(1, frame.columns):
            return False
        if looks_bad(states):
            self.laps.fail_all(
                LapFailed(f"{self.hops[-1].name} sent numbers that are none.", NOT_A_NUMBER, repairable=False)
            )
            return False
        return self.laps.arrived(LapKey(frame.position, frame.kind.is_batch), states)

    def end(self, error: LapFailed) -> None:
        """The layers are dealt anew; whatever still computes here fails."""
        self._ended = error
        self.laps.fail_all(error)

    def _still_dealt(self) -> None:
        if self._ended is not None:
            raise self._ended

    def find(self, id: str) -> Hop | None:
        return next((hop for hop in self.hops if hop.id == id), None)

    def named(self, name: str) -> Hop | None:
        return next((hop for hop in self.hops if hop.name == name), None)


def _known(states: Floats) -> asyncio.Future[Floats]:
    done: asyncio.Future[Floats] = asyncio.get_running_loop().create_future()
    done.set_result(states)
    return done


def _packed(states: Floats) -> bytes:
    try:
        return pack_halves(states, "this device")
    except HalfRangeError as error:
        raise LapFailed(error.what, error.remedy, repairable=False) from error
