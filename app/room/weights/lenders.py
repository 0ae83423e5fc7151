"""The devices of a room as places to fetch a file's ranges from (spec: rooms §13.4)."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from app.core.errors import LinkError
from app.models.gather import Put, RangeSource
from app.models.ranges import RangeSet, Span, read_span
from app.models.table import ModelFile
from app.room import messages as m
from app.room.ports import Link
from app.room.weights.asking import Asking
from app.room.weights.bulk import BulkClient
from app.room.weights.names import url_of

KEPT_RANGES = 20_000


def ranges_of(have: Sequence[str]) -> RangeSet:
    """An inventory's ranges; what is none does not count."""
    spans = (read_span(text) for text in itertools.islice(have, KEPT_RANGES))
    return RangeSet.of(span for span in spans if span is not None)


@dataclass(frozen=True)
class Way:
    """How to a device's direct connection: the addresses to try, its port, and whom to expect there."""

    addresses: Sequence[str]
    port: int
    context: ssl.SSLContext
    fingerprint: str


class DirectSource:
    """``gather.RangeSource``: a device of ours on the same network, over a connection of its own."""

    lent = merges = True

    def __init__(self, held: RangeSet, find_way: Callable[[], Awaitable[Way]], threads: Executor) -> None:
        self._held = held
        self._find_way = find_way
        self._threads = threads
        self._client: BulkClient | None = None
        self._one = asyncio.Lock()

    async def held(self, file: ModelFile) -> RangeSet:
        return self._held

    async def fetch(self, file: ModelFile, span: Span, put: Put) -> None:
        async with self._one:
            client = self._client or await self._connect()
            try:
                await self._run(client, url_of(file), span, put)
            except BaseException:
                self.close()
                raise

    async def _connect(self) -> BulkClient:
        way = await self._find_way()
        fault = LinkError("The other device is on another network.")
        for address in way.addresses:
            work = asyncio.get_running_loop().run_in_executor(
                self._threads, BulkClient, address, way.port, way.context, way.fingerprint
            )
            try:
                self._client = await work
                return self._client
            except LinkError as error:
                fault = error
        raise fault

    async def _run(self, client: BulkClient, url: str, span: Span, put: Put) -> None:
        """Cancelled, it waits for the thread: what it writes to is closed afterwards."""
        work = asyncio.get_running_loop().run_in_executor(self._threads, client.fetch, url, span, put)
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            client.close()
            await asyncio.wait([work])
            work.exception()
            raise

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class MessageSource:
    """``gather.RangeSource``: any device of the room, by control messages. Only ours give pieces of ranges."""

    lent = True

    def __init__(self, link: Link, held: RangeSet, ours: bool, asking: Asking) -> None:
        self.merges = ours
        self._link = link
        self._held = held
        self._asking = asking

    async def held(self, file: ModelFile) -> RangeSet:
        return self._held

    async def fetch(self, file: ModelFile, span: Span, put: Put) -> None:
        if not self._link.open:
            raise LinkError("The other device is gone.")
        await self._asking.fetch(self._link, url_of(file), span, put)


Find = Callable[[str, Mapping[str, Sequence[str]]], Awaitable[Sequence[RangeSource]]]
"""The sources of a file by its name, given what is already known of who has what."""


class RoomLenders:
    """``gather.Lenders`` for one load. ``known`` is what the model host said of the model's first file."""

    def __init__(self, find: Find, known: m.Load | None = None) -> None:
        self._find = find
        self._known = known
        self._found: dict[str, Sequence[RangeSource]] = {}

    async def sources(self, file: ModelFile) -> Sequence[RangeSource]:
        """Asked once a file; later calls give the same sources with their open connections."""
        url = url_of(file)
        if url and url not in self._found:
            # An inventory names no file: with the first one it is used up.
            known = self._known.inv if self._known is not None and not self._found else {}
            self._found[url] = await self._find(url, known)
        return self._found.get(url, ())

    def close(self) -> None:
        for source in itertools.chain(*self._found.values()):
            if isinstance(source, DirectSource):
                source.close()
        self._found.clear()
