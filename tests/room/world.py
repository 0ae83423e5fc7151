"""Whole rooms in one process: links in memory under a virtual clock, one toy model on every device."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from app.core.clock import VirtualClock
from app.core.errors import LinkError
from app.prompt.chat import Length, Style, Wording
from app.room import intents as it
from app.room.admission import Waiting
from app.room.binarypack import pack, unpack
from app.room.codes import creator_id
from app.room.frame import Frame
from app.room.gate import Credentials, Gate
from app.room.ice import IceConfig
from app.room.meta import OURS, Meta
from app.room.near import Near
from app.room.outside import RoomPorts
from app.room.ports import Link, Message
from app.room.relays import Relays
from app.room.room import Room
from app.room.saved_room import Remembered, Saved, decode_saved, encode_saved
from app.room.settings import RoomSettings
from app.room.state import RoomState
from app.room.transport import TransportState
from tests.room.toy import TABLE, ToyCompute, greedy, open_language

STEP = 0.05
SETTLE = 60
ABLE = Meta(ua="Device", webgpu=True, dspec=1, max_bind_mb=2048, native=OURS, full=True)
EXACT = RoomSettings(style=Style(wording=Wording.EXACT, length=Length.SHORT))


class MemoryLink:
    """One end of a link. What is sent arrives after the network's latency, in order, exactly once."""

    def __init__(self, network: Network, me: str, peer_id: str, dialed: bool) -> None:
        self.me, self.peer_id, self.dialed = me, peer_id, dialed
        self.on_message: Callable[[Message], None] = lambda _message: None
        self.on_frame: Callable[[Frame], None] = lambda _frame: None
        self.on_closed: Callable[[str], None] = lambda _reason: None
        self.open = True
        self.path = "direct"
        self.last_heard = network.clock.now()
        self.sent: list[Message] = []
        self.other: MemoryLink
        self._network = network
        self._held: deque[tuple[float, Callable[[], None]]] = deque()

    def send(self, message: Message) -> None:
        packed = pack(message)
        if self.open:
            self.sent.append(message)
            self._carry(lambda: self.other._got(unpack(packed)))

    def send_frame(self, frame: Frame) -> None:
        if self.open:
            self._carry(lambda: self.other._got_frame(frame))

    def _carry(self, deliver: Callable[[], None]) -> None:
        self._held.append((self._network.clock.now() + self._network.latency, deliver))

    def _got(self, message: object) -> None:
        if self.open:
            self.last_heard = self._network.clock.now()
            assert isinstance(message, dict)
            self.on_message(message)

    def _got_frame(self, frame: Frame) -> None:
        if self.open:
            self.last_heard = self._network.clock.now()
            self.on_frame(frame)

    def deliver(self) -> int:
        """Everything that is due and not stuck behind a cut."""
        done = 0
        while self._held and self._held[0][0] <= self._network.clock.now() and not self._network.cut(self):
            self._held.popleft()[1]()
            done += 1
        return done

    def close(self, reason: str = "") -> None:
        """The other end learns it after what is still on the way, if it is reachable."""
        if self.open:
            self.open = False
            self._carry(lambda: self.other._closed(reason))

    def _closed(self, reason: str) -> None:
        if self.open:
            self.open = False
            self.on_closed(reason)


@dataclass
class Network:
    """All links, and who cannot be reached just now."""

    clock: VirtualClock
    latency: float = 0.0
    links: list[MemoryLink] = field(default_factory=list[MemoryLink])
    unreachable: set[str] = field(default_factory=set[str])
    apart: set[frozenset[str]] = field(default_factory=set[frozenset[str]])
    """Pairs that cannot reach each other."""
    rooms: dict[str, MemoryTransport] = field(default_factory=dict[str, "MemoryTransport"])
    devices: dict[str, MemoryTransport] = field(default_factory=dict[str, "MemoryTransport"])

    def cut(self, link: MemoryLink) -> bool:
        return self.parted(link.me, link.peer_id)

    def parted(self, one: str, other: str) -> bool:
        return bool({one, other} & self.unreachable) or frozenset({one, other}) in self.apart

    def pair(self, dialer: str, other: str) -> tuple[MemoryLink, MemoryLink]:
        near, far = MemoryLink(self, dialer, other, True), MemoryLink(self, other, dialer, False)
        near.other, far.other = far, near
        self.links += [near, far]
        return near, far

    def between(self, me: str, peer_id: str) -> MemoryLink | None:
        """The open end at ``me`` of the link to ``peer_id``."""
        ends = (link for link in self.links if link.open and (link.me, link.peer_id) == (me, peer_id))
        return next(ends, None)

    def deliver(self) -> int:
        return sum(link.deliver() for link in list(self.links))


@dataclass(frozen=True)
class Pass:
    pass_text: str = "pass"
    code: str = ""


class MemoryTransport:
    """``outside.RoomTransport`` inside the network; newcomers wait for Allow when the gate asks."""

    ids = itertools.count(1)

    def __init__(self, network: Network) -> None:
        self.me = ""
        self.fingerprint = "ab" * 32
        self.identity = "a certificate"
        self.certificate = None
        self.relays = Relays(IceConfig(), None, network.clock)
        self.on_waiting: Callable[[Waiting], None] = lambda _waiting: None
        self.on_withdrawn: Callable[[str], None] = lambda _id: None
        self.on_gate: Callable[[Gate], None] = lambda _gate: None
        self.on_link: Callable[[Link, Message], None] = lambda _link, _hello: None
        self.on_state: Callable[[TransportState], None] = lambda _state: None
        self.ask = False
        self._network = network
        self._hello: Message = {}
        self._gate = Gate()
        self._at_door: dict[str, asyncio.Future[bool]] = {}

    async def open_room(self, code: str, gate: Gate, hello: Message, again: bool = False) -> None:
        self.me, self.ask, self._hello, self._gate = creator_id(code), gate.ask, hello, gate
        self._network.rooms[code] = self._network.devices[self.me] = self

    async def join(self, code: str, credentials: Credentials, hello: Message) -> Pass:
        self.me = self.me or f"device-{next(self.ids):06}"
        self._network.devices[self.me] = self
        creator = self._network.rooms.get(code)
        if creator is None or self._network.parted(creator.me, self.me):
            raise LinkError("There is no such room.", "Check the code.")
        if creator.ask and not credentials and not await creator.knock(self.me, hello):
            raise LinkError("The room turned this device away.")
        near, far = self._network.pair(self.me, creator.me)
        self.on_link(near, creator._hello)
        creator.on_link(far, hello)
        return Pass()

    async def join_near(self, near: Near, hello: Message) -> Pass:
        raise LinkError("Nothing is near in memory.")

    async def knock(self, id: str, hello: Message) -> bool:
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._at_door[id] = decided
        meta = hello["meta"]
        assert isinstance(meta, dict)
        self.on_waiting(Waiting(id, str(hello["name"]), meta, "123 456"))
        allowed = await decided
        self.on_withdrawn(id)
        return allowed

    async def dial(self, peer_id: str, fresh: bool = False) -> Link:
        """As the real one: the link there is, unless a fresh one takes its place."""
        other = self._network.devices[peer_id]
        if self._network.parted(peer_id, self.me):
            raise LinkError("That device cannot be reached.")
        known = self._network.between(self.me, peer_id)
        if known is not None and not fresh:
            return known
        if other in self._network.rooms.values():
            raise LinkError("A creator takes knocks, and gives no proof to others.")
        if known is not None:
            known.close("reconnected")
        near, far = self._network.pair(self.me, peer_id)
        self.on_link(near, {})
        other.on_link(far, {})
        return near

    def allow(self, peer_id: str) -> None:
        self._at_door.pop(peer_id).set_result(True)

    def deny(self, peer_id: str) -> None:
        self._at_door.pop(peer_id).set_result(False)

    def set_rules(self, *, ask: bool, api_clients: bool) -> None:
        self.ask, self._gate = ask, replace(self._gate, ask=ask, api_clients=api_clients)
        self.on_gate(self._gate)

    def set_hello(self, hello: Message) -> None:
        self._hello = hello

    async def close(self) -> None:
        for link in self._network.links:
            if link.me == self.me:
                link.close("closed")


@dataclass
class KeptInMemory:
    """``saved_room.RoomMemory`` on the virtual clock; goes through the bytes that a disk would hold."""

    clock: VirtualClock
    content: bytes | None = None
    at: float = 0.0

    def keep(self, saved: Callable[[], Saved]) -> None:
        self.content, self.at = encode_saved(saved()), self.clock.now()

    def alive(self) -> None:
        self.at = self.clock.now()

    def forget(self) -> None:
        self.content = None

    def last(self) -> Remembered | None:
        saved = decode_saved(self.content) if self.content else None
        return Remembered(saved, self.clock.now() - self.at) if saved else None

    def close(self) -> None: ...


@dataclass
class Box:
    """One computer: a room facade and its toy engine."""

    name: str
    room: Room
    compute: ToyCompute
    memory: KeptInMemory
    transport: MemoryTransport | None = None
    running: bool = True

    @property
    def state(self) -> RoomState:
        return self.room.state

    @property
    def answer(self) -> str:
        return self.state.transcript[-1].answer

    def do(self, intent: it.Intent) -> None:
        self.room.handle(intent)


class World:
    """Computers on one network; time moves only by ``run`` and ``until``."""

    verifies = 1
    """Whether devices take several columns of a step, so that words are guessed ahead."""
    open_language = staticmethod(open_language)
    choose = staticmethod(greedy)
    table = TABLE
    on_disk: Collection[str] = ()
    """Keys of the models every device has whole."""

    def __init__(self, latency: float = 0.0, *, fixed: bool = True) -> None:
        """``fixed``: a creator runs its model itself, whoever lends more."""
        self._fixed = fixed
        self.clock = VirtualClock(1000.0)
        self.network = Network(self.clock, latency)
        self.boxes: dict[str, Box] = {}

    def compute(self) -> ToyCompute:
        """The engine of the next box."""
        return ToyCompute()

    def box(
        self,
        name: str,
        settings: RoomSettings = EXACT,
        gpu: bool = True,
        memory: KeptInMemory | None = None,
        meta: Meta | None = None,
    ) -> Box:
        compute, memory = self.compute(), memory or KeptInMemory(self.clock)
        box = Box(name, None, compute, memory)  # type: ignore[arg-type]

        def transport(_signal: str, _identity: str) -> MemoryTransport:
            box.transport = MemoryTransport(self.network)
            return box.transport

        ports = RoomPorts(
            new_transport=transport,
            compute=compute if gpu else None,
            table=self.table,
            on_disk=lambda: self.on_disk,
            open_language=self.open_language,
            choose=self.choose,
            meta=meta
            or Meta(
                ua="Device",
                webgpu=True,
                dspec=self.verifies,
                max_bind_mb=2048,
                native=OURS,
                full=True,
                fixed_host=self._fixed,
            ),
            clock=self.clock,
            memory=memory,
        )
        box.room = Room(ports, settings)
        self.boxes[name] = box
        return box

    async def room(self, *pledges: float, settings: RoomSettings = EXACT) -> list[Box]:
        """A room whose devices lend these GB; the first is its creator."""
        names = ("otter", "heron", "finch", "wren")
        creator = self.box("otter", settings)
        creator.do(it.OpenRoom("otter", pledges[0]))
        await self.until(lambda: creator.state.invite is not None)
        boxes = [creator]
        for name, gb in zip(names[1:], pledges[1:], strict=False):
            boxes.append(await self.join(name, gb, creator))
        return boxes

    async def join(self, name: str, gb: float, creator: Box, gpu: bool = True, meta: Meta | None = None) -> Box:
        box = self.box(name, gpu=gpu, meta=meta)
        assert creator.state.invite is not None
        box.do(it.JoinRoom(creator.state.invite.link, name, gb))
        await self.until(lambda: any(d.me for d in box.state.devices))
        return box

    async def started(self, *pledges: float, settings: RoomSettings = EXACT) -> list[Box]:
        boxes = await self.room(*pledges, settings=settings)
        boxes[0].do(it.Start())
        await self.until(lambda: all(box.state.phase.has_model for box in boxes))
        return boxes

    async def settle(self) -> None:
        for _ in range(SETTLE):
            self.network.deliver()
            await asyncio.sleep(0)

    async def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP)):
            self.clock.advance(STEP)
            for box in self.boxes.values():
                if box.running:
                    box.room.tick()
            await self.settle()

    async def until(self, condition: Callable[[], bool], limit: float = 120.0) -> float:
        """Runs until the condition holds; the virtual seconds it took."""
        began = self.clock.now()
        await self.settle()
        while not condition():
            assert self.clock.now() - began < limit, "did not happen"
            await self.run(STEP)
        return self.clock.now() - began

    def kill(self, box: Box) -> None:
        """Gone without a word: nothing from or to it arrives any more."""
        assert box.transport is not None
        box.running = False
        self.network.unreachable.add(box.transport.me)

    def crash(self, box: Box) -> None:
        """Its process is gone: no farewell, and nothing that is sent to it arrives. It may start again."""
        assert box.transport is not None
        box.running = False
        for link in self.network.links:
            if link.me == box.transport.me:
                link.open = False
        self.network.rooms = {c: t for c, t in self.network.rooms.items() if t is not box.transport}

    async def restart(self, box: Box) -> Box:
        """The program begins anew on the same computer and goes back into its room."""
        again = self.box(box.name, memory=box.memory)
        again.do(it.Reopen())
        await self.until(lambda: again.state.phase.in_room, 30)
        return again

    def mute(self, box: Box) -> None:
        assert box.transport is not None
        self.network.unreachable.add(box.transport.me)

    def unmute(self, box: Box) -> None:
        assert box.transport is not None
        self.network.unreachable.discard(box.transport.me)

    async def close(self) -> None:
        for box in self.boxes.values():
            await box.room.close()
