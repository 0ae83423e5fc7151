"""Devices that lend each other weights over links in memory, each with a model folder of its own."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from aiortc import RTCCertificate

from app.models.partial import PartialFile
from app.models.ranges import RangeSet, Span
from app.models.store import partial_of, path_of
from app.models.table import ModelFile, ModelRecord, ModelTable, Source, builtin_table
from app.room import messages as m
from app.room.certificate import fingerprint_of
from app.room.ports import Link, Message
from app.room.weights.ends import Ends
from app.room.weights.exchange import WeightExchange, WeightPorts
from app.room.weights.names import url_of
from tests.room.world import MemoryLink, Network

T = TypeVar("T")
PATIENCE = 20.0


def file_of(content: bytes) -> ModelFile:
    return ModelFile("m.gguf", len(content), hashlib.sha256(content).hexdigest(), (Source(hub="a/b", file="m.gguf"),))


def record_of(content: bytes, owner: str) -> ModelRecord:
    """The same file under a key of the owner's own: so each has a folder, in one process."""
    return msgspec.structs.replace(builtin_table().models[0], key=owner, files=(file_of(content),))


@dataclass
class Lent:
    """One device: its exchange, its links, and what it was told."""

    name: str
    network: Network
    record: ModelRecord
    certificate: RTCCertificate | None = None
    links: list[MemoryLink] = field(default_factory=list)
    heard: list[m.Message] = field(default_factory=list)
    answering: bool = False
    relay: bool = False
    host: str = ""
    peer_fingerprints: dict[str, str] = field(default_factory=dict)
    peer_address: str = "127.0.0.1"
    addresses: tuple[str, ...] = ("127.0.0.1",)
    foreign: set[str] = field(default_factory=set)
    reachable: dict[str, Lent] = field(default_factory=dict)
    change: Callable[[WeightPorts], WeightPorts] = lambda ports: ports

    def __post_init__(self) -> None:
        ports = WeightPorts(
            me=self.name,
            clock=self.network.clock,
            table=ModelTable((self.record,)),
            links=lambda: self.links,
            dial=self._dial,
            ours=lambda peer: peer not in self.foreign,
            model_host=lambda: self.host,
            answering=lambda: self.answering,
            relay_configured=lambda: self.relay,
            certificate=self.certificate,
            ends=self._ends,
            addresses=lambda: self.addresses,
        )
        self.exchange = WeightExchange(self.change(ports))

    def _ends(self, link: Link) -> Ends:
        return Ends(self.peer_fingerprints.get(link.peer_id, ""), self.peer_address)

    async def _dial(self, peer_id: str, _fresh: bool) -> Link:
        if peer_id not in self.reachable:
            await asyncio.Event().wait()
        return connect(self, self.reachable[peer_id])

    def take(self, link: MemoryLink) -> MemoryLink:
        self.links.append(link)
        link.on_message = lambda raw: self._said(link, raw)
        link.on_closed = lambda _reason: self.exchange.link_closed(link)
        return link

    def _said(self, link: MemoryLink, raw: Message) -> None:
        message = m.decode(raw)
        assert message is not None
        self.heard.append(message)
        assert self.exchange.heard(link, message)

    def put_whole(self, content: bytes) -> None:
        path = path_of(self.record, self.record.files[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def put_ranges(self, content: bytes, *spans: Span) -> PartialFile:
        (file,) = self.record.files
        partial = PartialFile(partial_of(self.record, file), file.bytes, file.sha256)
        partial.create()
        for span in spans:
            with partial.path.open("r+b") as stream:
                stream.seek(span.lo)
                stream.write(content[span.lo : span.hi])
            partial.keep(span, lent=False)
        return partial

    @property
    def url(self) -> str:
        return url_of(self.record.files[0])


def connect(one: Lent, other: Lent) -> MemoryLink:
    """A proved link; both ends know the other's certificate from it. The first one's end."""
    near, far = one.network.pair(one.name, other.name)
    for device, peer in ((one, other), (other, one)):
        if peer.certificate is not None:
            device.peer_fingerprints.setdefault(peer.name, fingerprint_of(peer.certificate))
    other.take(far)
    return one.take(near)


async def drive(network: Network, work: Awaitable[T], *devices: Lent, speed: float = 0.0) -> T:
    """Carries messages until the work is done; with ``speed``, so many seconds pass a turn."""
    task = asyncio.ensure_future(work)
    async with asyncio.timeout(PATIENCE):
        while not task.done():
            network.deliver()
            network.clock.advance(speed)
            if speed:
                for device in devices:
                    device.exchange.tick()
            await asyncio.sleep(0.0005)
    return await task


async def outcome(network: Network, work: Awaitable[Any], *devices: Lent, speed: float = 0.0) -> Any:
    """The result, or the error as a value."""
    try:
        return await drive(network, work, *devices, speed=speed)
    except Exception as error:  # noqa: BLE001 - the test says which it wants
        return error


class Sink:
    """Takes a range's bytes as a file would."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, data: bytes | memoryview) -> None:
        self.data += data


async def sources(network: Network, device: Lent, *devices: Lent, load: m.Load | None = None) -> Sequence[Any]:
    lenders = device.exchange.lenders(load)
    return await drive(network, lenders.sources(device.record.files[0]), device, *devices, speed=0.05)


def all_of(content: bytes) -> RangeSet:
    return RangeSet.of([Span(0, len(content))])
