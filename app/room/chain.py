"""The model host's view of computing: its own layers, then every device of the chain, then back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from app.core.clock import Clock
from app.engine.speculate import ALONE_DEPTHS, SPLIT_DEPTHS, DepthControl
from app.engine.types import STEP_COLUMNS, ColumnClass, Floats, Shaping, Step, Stepped
from app.room import messages as m
from app.room.drafter import Drafter, LookupWidths
from app.room.drafts import BOLD, CAUTIOUS, chain_verifies
from app.room.frame import DROP_ALL, Control, Frame, FrameKind
from app.room.halves import HalfRangeError, looks_bad
from app.room.laps import LapFailed, LapKey, Laps, LapStats
from app.room.meta import OURS, Meta
from app.room.pending import PendingControl
from app.room.ports import Compute, Link
from app.room.precision import Precision

T = TypeVar("T")
Shape = Awaitable[Shaping | None]
NOT_A_NUMBER = "Try another model file, or run the model on one device."


@dataclass
class Hop:
    """One device of the chain as the model host tracks it.

    ``slots`` are the checkpoints it is known to hold, ``lost`` those it said it could not keep.
    """

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
    keeps: bool = False
    slots: set[int] = field(default_factory=set[int])
    lost: set[int] = field(default_factory=set[int])

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

    def __init__(
        self, compute: Compute, hidden: int, hops: Sequence[Hop], clock: Clock, *, hybrid: bool = False
    ) -> None:
        self.hops = tuple(hops)
        self.hybrid = hybrid
        self.laps = Laps(clock)
        self.stats = LapStats()
        self.pending = PendingControl(unheard=not hops)
        self.depth = DepthControl(SPLIT_DEPTHS if hops else ALONE_DEPTHS)
        self._ended: LapFailed | None = None
        self._precision = Precision(self.hops[0].load.hidden) if self.hops else Precision.HALF
        self._compute = compute
        self._hidden = hidden
        self._clock = clock
        self._under_way = 0

    @property
    def whole(self) -> bool:
        return all(hop.whole for hop in self.hops)

    @property
    def alone(self) -> bool:
        return not self.hops

    @property
    def sequences(self) -> int:
        """How many conversations the caches of all devices keep apart."""
        return self._compute.sequences if self.alone else 1

    @property
    def ours(self) -> bool:
        """Whether every device verifies steps of any width and takes its state back by positions alone."""
        return all(hop.meta.native == OURS for hop in self.hops)

    @property
    def lookup_widths(self) -> LookupWidths:
        """A dense model alone gains nothing: a lookup saves the way between devices."""
        if not self._verifies or (self.alone and not self.hybrid):
            return LookupWidths()
        widest = STEP_COLUMNS - 1 if self.ours else BOLD
        return LookupWidths(BOLD if self.hybrid else CAUTIOUS, widest)

    @property
    def _verifies(self) -> bool:
        """Whether steps of several columns can be taken: everywhere but on dense devices that do not say so."""
        return self.hybrid or chain_verifies(hop.meta for hop in self.hops)

    def drafter(self, ids: Sequence[int], start: int, before: Floats | None, sequence: int = 0) -> Drafter:
        """Guesses for an answer to ``ids``, of which the caches hold the first ``start``."""
        return Drafter(
            self._compute, self.lookup_widths, self.depth, ids,
            start=start, before=before, sequence=sequence, verifies=self._verifies,
        )  # fmt: skip

    def floor(self, position: int) -> int | None:
        """How far back a recurrent state can be taken after a step at ``position``; None: not at all."""
        return position if self.ours else None

    def width(self, kind: ColumnClass) -> int:
        """Most columns of one frame; step columns travel together only where every device verifies."""
        if self.alone:
            return max(STEP_COLUMNS, self._compute.prompt_chunk) if kind is ColumnClass.PROMPT else STEP_COLUMNS
        if kind is ColumnClass.PROMPT or self._verifies:
            return STEP_COLUMNS
        return 1

    async def send(
        self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0
    ) -> asyncio.Future[Floats]:
        """Runs the own layers and sends the columns on; the future is their hidden states back here."""
        states = await self._own(self._compute.tokens(ids, position, kind, sequence))
        if looks_bad(states):
            raise LapFailed("This device computed numbers that are none.", NOT_A_NUMBER, repairable=False)
        if self.alone:
            return _known(states)
        return self._launch(states, position, kind)

    def _launch(self, states: Floats, position: int, kind: ColumnClass) -> asyncio.Future[Floats]:
        first = self.hops[0].link
        missing = next((hop.name for hop in self.hops if not hop.here), "")
        if missing or first is None:
            raise LapFailed(f"{missing} is not here.")
        columns = states.shape[0]
        batch = kind is ColumnClass.PROMPT or columns > 1
        frame = Frame(
            kind=FrameKind.HIDDEN_BATCH if batch else FrameKind.HIDDEN,
            position=position,
            columns=columns,
            payload=self._packed(states),
            spec=batch and kind is ColumnClass.STEP,
            control=self.pending.take(reset=position == 0),
            full=self._precision is Precision.FULL,
        )
        slowest = max(hop.rtt for hop in self.hops)
        lap = self.laps.open(LapKey(position, batch), self.stats.timeout(slowest, batch=batch))
        lap.add_done_callback(lambda done: self._kept(frame.control, done))
        first.send_frame(frame)
        return lap

    def _packed(self, states: Floats) -> bytes:
        try:
            return self._precision.pack(states, "this device")
        except HalfRangeError as error:
            raise LapFailed(error.what, error.remedy, repairable=False) from error

    def _kept(self, control: Control, lap: asyncio.Future[Floats]) -> None:
        """A frame that came back has been obeyed by every device on its way."""
        if lap.cancelled() or lap.exception() is not None:
            return
        for hop in self.hops:
            hop.slots = set() if DROP_ALL in control.drop else hop.slots - set(control.drop)
            if control.save and control.save not in hop.lost:
                hop.slots.add(control.save)

    async def step(self, ids: Sequence[int], position: int, shape: Shape | None = None, sequence: int = 0) -> Stepped:
        """A word, and guesses after it, through all layers and the head; ``shape`` is what their logits get."""
        began, undisturbed = self._clock.now(), not self._under_way
        if self.alone and shape is None:
            stepped, own_until = await self._at_once(Step(ids, position, sequence))
        else:
            stepped, own_until = await self._around(ids, position, shape, sequence)
        if undisturbed and not self._under_way:
            self._measured(began, own_until)
        return stepped

    async def greedy(self, token: int, position: int, stops: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        """The likeliest words after ``token`` where this device is alone: each is drawn on the GPU, none waited for."""
        began, undisturbed = self._clock.now(), not self._under_way
        words = await self._own(self._compute.greedy(token, position, stops, count, sequence))
        if undisturbed and not self._under_way:
            self._measured(began, self._clock.now(), len(words))
        return words

    async def _at_once(self, step: Step) -> tuple[Stepped, float]:
        (stepped,) = await self._own(self._compute.step([step]))
        return stepped, self._clock.now()

    async def _around(
        self, ids: Sequence[int], position: int, shape: Shape | None, sequence: int
    ) -> tuple[Stepped, float]:
        """With the moment at which this device's layers were through."""
        lap = await self.send(ids, position, ColumnClass.STEP, sequence)
        sent = self._clock.now()
        states = await lap
        found = await self._own(self._compute.candidates(states, await shape if shape is not None else None))
        return Stepped(found, states), self._clock.now() if self.alone else sent

    async def _own(self, work: Awaitable[T]) -> T:
        """This device's part. What fails because the layers are dealt anew is that loss, whatever the engine says."""
        self._under_way += 1
        try:
            return await work
        finally:
            self._under_way -= 1
            self._still_dealt()

    def _measured(self, began: float, own_until: float, words: int = 1) -> None:
        self.stats = self.stats.measured((self._clock.now() - began) / words, (own_until - began) / words)

    def verified(self, columns: int, right: int) -> None:
        """Of a step's columns only the first ``right`` ones stay; the devices hear it with the next frame."""
        if self.hybrid and not self.alone and 0 < right < columns:
            self.pending.rejected_after(right - 1)

    def returned(self, frame: Frame, sender: str) -> bool:
        """Takes a frame from the last device; False when it is nobody's."""
        if not frame.kind.is_return or not self.hops or sender != self.hops[-1].id:
            return False
        try:
            states = self._precision.unpack(frame.payload, self._hidden)
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
