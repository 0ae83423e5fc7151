"""A device that holds layers for somebody else's conversation (spec: rooms §13.2, §5.7)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import msgspec

from app.core.clock import Clock
from app.core.errors import DeviceLost, LinkError, PooledError
from app.engine.types import ColumnClass, Part
from app.models.gather import Lenders
from app.models.table import Models
from app.room import messages as m
from app.room.copies import Copies, NoCopies
from app.room.frame import Frame, FrameKind
from app.room.halves import looks_bad
from app.room.laps import smoothed
from app.room.memory import kv_format
from app.room.ports import Compute, Link, LoadRequest
from app.room.precision import Precision, read_precision
from app.room.tasks import Tasks
from app.room.worker_state import WorkerState

log = logging.getLogger(__name__)

FRAMES_WAITING = 256
TELEMETRY_PERIOD = 0.7
LINK_SECONDS = 60.0

Dial = Callable[[str, bool], Awaitable[Link]]
"""A proved link to a device; True: a fresh one even if there is one."""


@dataclass(frozen=True)
class WorkerPorts:
    """``tell`` sends a message to the model host, ``host_link`` is the link to it, if any. ``lenders`` are devices
    to ask for the weights of a load."""

    me: str
    compute: Compute
    clock: Clock
    table: Models
    dial: Dial
    tell: Callable[[m.Message], None]
    host_link: Callable[[], Link | None]
    copies: Copies = field(default_factory=NoCopies)
    lenders: Callable[[m.Load], Lenders | None] = lambda _load: None


class Worker:
    """Loads what it is told to, then runs frames strictly in order."""

    def __init__(self, ports: WorkerPorts, pledge_bytes: Callable[[], int]) -> None:
        self._ports = ports
        self._pledge_bytes = pledge_bytes
        self._tasks = Tasks()
        self._state = WorkerState(ports.compute, ports.copies, ports.tell, self._tasks)
        self._load: m.Load | None = None
        self._loading: asyncio.Task[None] | None = None
        self._ready = False
        self._next: Link | None = None
        self._hidden = 0
        self._precision = Precision.HALF
        self._expected = ""
        self._frames: asyncio.Queue[Frame] = asyncio.Queue(FRAMES_WAITING)
        self._timings = m.Timings()
        self._told_at = 0.0

    @property
    def range(self) -> tuple[int, int] | None:
        return self._load.range if self._load else None

    @property
    def loading(self) -> bool:
        return self._loading is not None and not self._loading.done()

    def start(self) -> None:
        self._tasks.start(self._run_frames(), "worker frames")

    def load(self, load: m.Load) -> None:
        """The same shard is kept and only its neighbours change; anything else replaces it."""
        same = self._load is not None and _shard(self._load) == _shard(load)
        self._expected = load.prev
        if same and self.loading:
            self._load = load
            return
        self._cancel_load()
        self._drop_frames()
        kept = same and self._ready
        self._load, self._ready = load, False
        self._loading = self._tasks.start(self._obey(load, kept), "worker load")

    async def _obey(self, load: m.Load, kept: bool) -> None:
        try:
            request = self._request(load)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._connect(load.next, fresh=False), name="worker link")
                filling = both.create_task(self._fill(request, kept), name="worker fill")
            self._ready = True
            self._ports.tell(m.Ready(ckpt=True, slots=filling.result()))
        except* PooledError as errors:
            await self._give_up(_first(errors))

    def _request(self, load: m.Load) -> LoadRequest:
        if load.v != m.PROTOCOL_VERSION:
            raise PooledError("That model host speaks another version.", "Update both devices.")
        record = self._ports.table.get(load.model)
        lo, hi = load.range
        if not 0 <= lo < hi <= record.layers or load.ctx < 1:
            raise PooledError("The model host dealt layers this model does not have.", "Update both devices.")
        kv = kv_format(record, load.kv)
        precision = read_precision(load.hidden)
        if load.offload is not None or kv is None or precision is None:
            raise PooledError("This device cannot hold layers that way.", "Deal without it.")
        self._hidden, self._precision = record.hidden, precision
        return LoadRequest(load.model, Part(lo, hi), load.ctx, kv, self._pledge_bytes(), self._ports.lenders(load))

    async def _fill(self, request: LoadRequest, kept: bool) -> tuple[int, ...]:
        """The slots of states that lay on the disk."""
        if not kept:
            await self._ports.compute.load(request, self._progress)
        return await self._state.read_back()

    def _progress(self, share: float) -> None:
        self._ports.tell(m.LoadShare(pct=int(share * 100)))

    async def _connect(self, next_id: str, *, fresh: bool) -> None:
        if next_id == m.MODEL_HOST:
            self._next = None
            return
        try:
            async with asyncio.timeout(LINK_SECONDS):
                self._next = await self._ports.dial(next_id, fresh)
        except TimeoutError as error:
            raise LinkError("The next device of the chain cannot be reached.", "Deal again.") from error

    async def _give_up(self, error: PooledError) -> None:
        self._load, self._ready = None, False
        with contextlib.suppress(PooledError):
            await self._ports.compute.unload()
        self._ports.tell(m.DeviceError(message=m.line(str(error)), load=True))

    def next(self, change: m.Next) -> None:
        """A neighbour changed; the model host waits for the answer."""
        if self._load is None:
            return
        self._expected = change.prev or self._expected
        self._tasks.start(self._relink(change), "worker relink")

    async def _relink(self, change: m.Next) -> None:
        ok = True
        try:
            await self._connect(change.next, fresh=change.relink)
        except PooledError:
            ok = False
        self._ports.tell(m.Linked(next=change.next, ok=ok))

    def stop_load(self) -> None:
        """The start was given up: what was loaded for it is freed."""
        if self._load is not None:
            self._cancel_load()
            self._load, self._ready = None, False
            self._tasks.start(self._free(), "worker free")

    def dealt(self, names: m.ByName, own_name: str) -> None:
        """A device that the deal left out becomes a guest."""
        if own_name not in names:
            self.stop_load()

    async def _free(self) -> None:
        with contextlib.suppress(PooledError):
            await self._ports.compute.unload()

    def _cancel_load(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None

    def _drop_frames(self) -> None:
        while not self._frames.empty():
            self._frames.get_nowait()

    def frame(self, frame: Frame, sender: str) -> None:
        """Only from the device before this one; without its name, from the first that sends."""
        if frame.kind.is_return or not self._ready:
            return
        self._expected = self._expected or sender
        if sender != self._expected or self._frames.full():
            return
        self._frames.put_nowait(frame)

    def link_closed(self, peer_id: str) -> None:
        if self._next is not None and self._next.peer_id == peer_id:
            self._next = None
            self._ports.tell(m.LinkLost(name=peer_id))

    async def _run_frames(self) -> None:
        while True:
            frame = await self._frames.get()
            try:
                await self._run(frame)
            except DeviceLost as error:
                self._rebuild(error)
            except PooledError as error:
                self._ports.tell(m.DeviceError(message=m.line(str(error))))

    def _rebuild(self, error: DeviceLost) -> None:
        """The GPU is gone and everything on it: the same layers are loaded again on what there is."""
        load = self._load
        if load is None or not self._ready:
            return
        self._ports.tell(m.DeviceError(message=m.line(str(error)), load=True))
        self._ready = False
        self._drop_frames()
        self._loading = self._tasks.start(self._obey(load, kept=False), "worker reload")

    async def _run(self, frame: Frame) -> None:
        await self._state.obey(frame)
        kind = ColumnClass.PROMPT if frame.kind.is_batch and not frame.spec else ColumnClass.STEP
        began = self._ports.clock.now()
        states = self._precision.unpack(frame.payload, self._hidden)
        if states.shape[0] != max(1, frame.columns):
            raise PooledError("A frame arrived with another number of columns than it says.")
        result = await self._ports.compute.hidden(states, frame.position, kind)
        self._state.ran(frame, len(states))
        if looks_bad(result):
            self._ports.tell(m.DeviceError(message="This device computed numbers that are none."))
        self._forward(frame, self._precision.pack(result, "this device"))
        self._measure(frame, (self._ports.clock.now() - began) * 1000)

    def _forward(self, frame: Frame, payload: bytes) -> None:
        if self._load is not None and self._load.next == m.MODEL_HOST and self._next is None:
            kind = FrameKind.RETURN_BATCH if frame.kind.is_batch else FrameKind.RETURN
            link = self._ports.host_link()
            forwarded = Frame(kind, frame.position, frame.columns, payload, frame.spec, full=self._full)
        else:
            link = self._next
            forwarded = replace(frame, payload=payload, full=self._full)
        if link is not None and link.open:
            link.send_frame(forwarded)
        elif self._load is not None:
            # The frame is lost with its connection; the model host repairs the chain and sends it again.
            self._ports.tell(m.LinkLost(name=self._load.next))

    @property
    def _full(self) -> bool:
        return self._precision is Precision.FULL

    def _measure(self, frame: Frame, ms: float) -> None:
        """Running averages in ms, one a kind of frame; told at most every TELEMETRY_PERIOD."""
        kind = "spec" if frame.spec else "pre" if frame.kind.is_batch else "one"
        before: float = getattr(self._timings, kind)
        average = smoothed(before, ms) if before else ms
        self._timings = msgspec.structs.replace(self._timings, **{kind: round(average, 1)})
        if self._ports.clock.now() - self._told_at >= TELEMETRY_PERIOD:
            self._told_at = self._ports.clock.now()
            self._ports.tell(m.Telemetry(k=self._timings))

    async def close(self) -> None:
        await self._tasks.close()
        await self._free()


def _shard(load: m.Load) -> tuple[object, ...]:
    return load.model, load.range, load.ctx, load.kv, load.offload, load.hidden


def _first(group: BaseExceptionGroup[PooledError]) -> PooledError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
