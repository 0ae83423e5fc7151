"""Weights between the devices of a room: what this one gives, and whom it asks (spec: rooms §6.3, §13.4)."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aiortc import RTCCertificate

from app.core.clock import Clock
from app.core.errors import FileError, LinkError, PooledError
from app.models import stock
from app.models.gather import RangeSource
from app.models.ranges import RangeSet, Span
from app.models.table import Models
from app.room import messages as m
from app.room.certificate import der_of
from app.room.lan_address import interfaces
from app.room.ports import Link
from app.room.tasks import Tasks
from app.room.weights.asking import Asking
from app.room.weights.deadlines import Deadlines, Replies
from app.room.weights.door import Door
from app.room.weights.ends import Ends, ends_of, is_local, may_carry, worth_dialing
from app.room.weights.lenders import KEPT_RANGES, DirectSource, MessageSource, RoomLenders, Way, ranges_of
from app.room.weights.lending import Lending
from app.room.weights.names import find
from app.room.weights.pacer import Pacer
from app.room.weights.tls import client_context, fingerprint_of_der

LINK, INVENTORY = 10.0, 1.5
"""Seconds to a device that may have ranges, and for its answer what they are."""
MOST_ADDRESSES = 8
MOST_ANSWERS = 4


def _local_addresses() -> list[str]:
    return [each.address for each in interfaces() if is_local(each.address)]


@dataclass(frozen=True)
class WeightPorts:
    """What an exchange needs of its room.

    ``links`` are the proved ones in the roster's order; ``dial`` makes one. ``ours``: whether a device runs this
    application; ``model_host``: who runs the model, "" before. Without ``certificate`` nothing goes directly.
    """

    me: str
    clock: Clock
    table: Models
    links: Callable[[], Sequence[Link]]
    dial: Callable[[str, bool], Awaitable[Link]]
    ours: Callable[[str], bool]
    model_host: Callable[[], str]
    answering: Callable[[], bool]
    relay_configured: Callable[[], bool]
    allowed: Callable[[], bool] = lambda: True
    certificate: RTCCertificate | None = None
    ends: Callable[[Link], Ends] = ends_of
    addresses: Callable[[], Sequence[str]] = _local_addresses


class WeightExchange:
    """``heard`` takes the room's messages, ``lenders`` gives what a load fetches from, ``tick`` ends waits."""

    def __init__(self, ports: WeightPorts) -> None:
        self.pacer = Pacer(ports.answering, ports.clock)
        self._ports = ports
        self._tasks = Tasks()
        self._numbers = itertools.count(1)
        self._deadlines = Deadlines(ports.clock)
        self._replies = Replies(self._deadlines)
        self._asking = Asking(ports.me, ports.clock)
        self._lending = Lending(ports.table, ports.clock, self.pacer, lambda link: ports.ends(link).backlog)
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="weights fetched")
        self._busy: Counter[str] = Counter()
        certificate = ports.certificate
        self._door = Door(certificate, self._read, self.pacer, ports.clock) if certificate is not None else None

    # -- messages -----------------------------------------------------------------------------

    def heard(self, link: Link, message: m.Message) -> bool:
        """Whether the message was one about weights; it has been dealt with then."""
        match message:
            case m.WeightPart():
                self._asking.part(link, message)
            case m.WeightAck():
                self._lending.acked(link, message)
            case m.WeightRequest():
                give = self._lending.asked if self._may(link) else self._lending.miss
                give(link, message)
            case m.Inventory():
                self._replies.give(link.peer_id, message.url, message)
            case m.DirectOffer():
                self._replies.give(link.peer_id, message.id, message)
            case m.InventoryRequest():
                self._answer(link, lambda: self._inventory(link, message.url))
            case m.DirectAsk():
                self._answer(link, lambda: self._offer(link, message))
            case _:
                return False
        return True

    def _answer(self, link: Link, make: Callable[[], Awaitable[m.Message]]) -> None:
        """A few at a time for each device: more are not worth the disk's time."""
        if self._busy[link.peer_id] < MOST_ANSWERS:
            self._busy[link.peer_id] += 1
            self._tasks.start(self._send(link, make), f"weights for {link.peer_id}")

    async def _send(self, link: Link, make: Callable[[], Awaitable[m.Message]]) -> None:
        try:
            link.send(m.encode(await make()))
        finally:
            self._busy[link.peer_id] -= 1

    def _may(self, link: Link) -> bool:
        return self._ports.allowed() and may_carry(link, self._ports.relay_configured())

    # -- giving -------------------------------------------------------------------------------

    async def _inventory(self, link: Link, url: str) -> m.Message:
        """Each tensor by itself, as browsers look for them, after the ranges that they make together."""
        found = find(self._ports.table, url)
        if found is None or not self._may(link):
            return m.Inventory(url=url)
        ranges = await asyncio.to_thread(stock.held, *found)
        tensors = await asyncio.to_thread(stock.held_tensors, *found)
        texts = dict.fromkeys(span.text for span in (*ranges.spans, *tensors))
        return m.Inventory(url=url, have=tuple(itertools.islice(texts, KEPT_RANGES)))

    async def _offer(self, link: Link, ask: m.DirectAsk) -> m.Message:
        ends = self._ports.ends(link)
        certificate = self._ports.certificate
        known = fingerprint_of_der(ask.cert) == ends.peer_fingerprint
        if self._door is None or certificate is None or not known or not self._goes_directly(link):
            return m.DirectOffer(id=ask.id, miss=True)
        try:
            port = self._door.admit(ask.cert)
        except LinkError:
            return m.DirectOffer(id=ask.id, miss=True)
        at = tuple(self._ports.addresses())[:MOST_ADDRESSES]
        return m.DirectOffer(id=ask.id, cert=der_of(certificate), at=at, port=port)

    def _goes_directly(self, link: Link) -> bool:
        local = is_local(self._ports.ends(link).peer_address)
        return self._may(link) and link.path == "direct" and local and self._ports.ours(link.peer_id)

    def _read(self, url: str, span: Span) -> bytes:
        found = find(self._ports.table, url)
        if found is None or not self._ports.allowed():
            raise FileError("That file is not lent.")
        return stock.read(*found, span)

    # -- asking -------------------------------------------------------------------------------

    def lenders(self, load: m.Load | None = None) -> RoomLenders:
        """For one load; ``load`` may say who has what."""
        return RoomLenders(self._find, load)

    async def inventories(self, url: str) -> dict[str, tuple[str, ...]]:
        """What every linked device has of a file, for ``Load.inv``: a model host asks once before it deals."""
        links = [link for link in self._ports.links() if link.open and self._may(link)]
        answers = await asyncio.gather(*(self._ask_inventory(link, url) for link in links))
        return {link.peer_id: have for link, have in zip(links, answers, strict=True) if have}

    async def _ask_inventory(self, link: Link, url: str) -> tuple[str, ...]:
        link.send(m.encode(m.InventoryRequest(url=url)))
        try:
            answer = await self._replies.wait(link.peer_id, url, INVENTORY)
        except LinkError:
            return ()
        return answer.have[:KEPT_RANGES] if isinstance(answer, m.Inventory) else ()

    async def _find(self, url: str, known: Mapping[str, Sequence[str]]) -> Sequence[RangeSource]:
        """Directly reached devices first; of the others not the model host, which has enough to send."""
        if not self._ports.allowed():
            return ()
        have: dict[str, Sequence[str]] = {**known, **await self.inventories(url)}
        links = await asyncio.gather(*(self._link_to(peer) for peer in have if peer != self._ports.me))
        held = [(link, ranges_of(have[link.peer_id])) for link in links if link is not None and self._may(link)]
        direct = [self._direct(link, ranges) for link, ranges in held if self._goes_directly(link) and self._door]
        host = self._ports.model_host()
        others = [self._by_messages(link, ranges) for link, ranges in held if link.peer_id != host]
        return [*direct, *others]

    async def _link_to(self, peer_id: str) -> Link | None:
        for link in self._ports.links():
            if link.peer_id == peer_id and link.open:
                return link
        dialing = self._ports.dial(peer_id, False)
        try:
            return await self._deadlines.within(LINK, dialing, "That device could not be reached.")
        except PooledError:
            return None

    def _by_messages(self, link: Link, ranges: RangeSet) -> MessageSource:
        return MessageSource(link, ranges, self._ports.ours(link.peer_id), self._asking)

    def _direct(self, link: Link, ranges: RangeSet) -> DirectSource:
        return DirectSource(ranges, lambda: self._way(link), self._threads)

    async def _way(self, link: Link) -> Way:
        """Asks for an offer and checks that it is the link's other end that will be met there."""
        certificate, ends = self._ports.certificate, self._ports.ends(link)
        if certificate is None or not link.open:
            raise LinkError("The other device is gone.")
        id = f"{self._ports.me}:d{next(self._numbers)}"
        link.send(m.encode(m.DirectAsk(id=id, cert=der_of(certificate))))
        offer = await self._replies.wait(link.peer_id, id, LINK)
        if not isinstance(offer, m.DirectOffer) or offer.miss:
            raise LinkError("The other device offers no direct connection.")
        if fingerprint_of_der(offer.cert) != ends.peer_fingerprint:
            raise LinkError("The other device shows another certificate than on its link.")
        addresses = worth_dialing(offer.at, ends.peer_address)
        return Way(addresses, offer.port, client_context(certificate, offer.cert), ends.peer_fingerprint)

    # -- time and ends ------------------------------------------------------------------------

    def tick(self) -> None:
        """Every half second or so."""
        self._deadlines.tick()
        self._asking.tick()
        self._lending.tick()
        if self._door is not None:
            self._door.tick()

    def link_closed(self, link: Link) -> None:
        self._replies.link_closed(link.peer_id)
        self._asking.link_closed(link.peer_id)
        self._lending.link_closed(link.peer_id)
        if self._door is not None:
            self._door.revoke(self._ports.ends(link).peer_fingerprint)

    async def close(self) -> None:
        await self._tasks.close()
        await self._lending.close()
        if self._door is not None:
            await self._door.close()
        self._threads.shutdown(wait=False)
