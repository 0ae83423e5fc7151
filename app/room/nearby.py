"""Rooms on the local network: announced, found by a typed code, and listed.

``advert`` says what an announcement tells, ``near`` how a listed room is entered without its code.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from zeroconf import Error as ZeroconfError
from zeroconf import ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from app.room.advert import SERVICE, Advert, Announcement, read_advert, service_of
from app.room.lan_address import LOOPBACK
from app.room.multicast import open_zeroconf
from app.room.near import NearbyRoom
from app.room.signal_servers import SignalServer
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

SEARCH_S = 3.0
ASK_S = 1.0
PROBE_S = 1.0
PROBE_PERIOD_S = 10.0
MOST_ADVERTS = 16

OpenZeroconf = Callable[[], AsyncZeroconf]


class Nearby:
    """Announces the own room and looks for others'. Without multicast all of it quietly does nothing.

    ``on_rooms`` is called when ``rooms`` changes; set it before ``watch``.
    """

    def __init__(self, open_zeroconf: OpenZeroconf = open_zeroconf) -> None:
        self.on_rooms: Callable[[], None] = lambda: None
        self._open_zeroconf = open_zeroconf
        self._announced: AsyncZeroconf | None = None
        self._watch: _Watch | None = None

    async def announce(self, room: Announcement, addresses: Sequence[str], port: int) -> None:
        """Until ``close``. A room that only this computer can reach is not announced."""
        if self._announced is not None or (LOOPBACK in addresses and self._open_zeroconf is open_zeroconf):
            return
        try:
            info = await asyncio.to_thread(service_of, room, addresses, port)
            self._announced = self._open_zeroconf()
            await self._announced.async_register_service(info, allow_name_change=True)
        except (OSError, ZeroconfError) as error:
            log.info("the room is not announced nearby: %s", error)

    async def find(self, code: str, seconds: float = SEARCH_S) -> tuple[SignalServer, ...]:
        """Room servers of the room with that code, looking for at most so many seconds."""
        try:
            zeroconf = self._open_zeroconf()
        except OSError as error:
            log.info("cannot look nearby: %s", error)
            return ()
        search = _Search(code, zeroconf.zeroconf)
        try:
            async with asyncio.timeout(seconds):
                return await search.run()
        except (TimeoutError, OSError, ZeroconfError):
            return ()
        finally:
            await zeroconf.async_close()

    def rooms(self) -> tuple[NearbyRoom, ...]:
        """Those that announce themselves now, by name; empty while nobody watches."""
        return self._watch.rooms() if self._watch is not None else ()

    async def watch(self) -> None:
        """Begins to listen for rooms, until ``unwatch``."""
        if self._watch is not None:
            return
        try:
            zeroconf = self._open_zeroconf()
        except OSError as error:
            log.info("cannot look nearby: %s", error)
            return
        self._watch = _Watch(zeroconf, lambda: self.on_rooms())
        self._watch.start()

    async def unwatch(self) -> None:
        """The list is empty from now on; no callback tells it."""
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.close()

    async def close(self) -> None:
        """Takes the own announcement back."""
        announced, self._announced = self._announced, None
        if announced is not None:
            await announced.async_unregister_all_services()
            await announced.async_close()


async def _ask(zeroconf: Zeroconf, name: str) -> Advert | None:
    info = AsyncServiceInfo(SERVICE, name)
    found = await info.async_request(zeroconf, ASK_S * 1000)
    return read_advert(info) if found else None


class _Search:
    """One look around: every announcement once, and no more of them than a fixed number."""

    def __init__(self, code: str, zeroconf: Zeroconf) -> None:
        self._code = code
        self._zeroconf = zeroconf
        self._names: asyncio.Queue[str] = asyncio.Queue(MOST_ADVERTS)
        self._seen: set[str] = set()

    async def run(self) -> tuple[SignalServer, ...]:
        """The first match; waits on while there is none."""
        browser = AsyncServiceBrowser(self._zeroconf, SERVICE, handlers=[self._heard])
        try:
            while True:
                advert = await _ask(self._zeroconf, await self._names.get())
                if advert is not None and await asyncio.to_thread(advert.meant_by, self._code):
                    return advert.servers
        finally:
            await browser.async_cancel()

    def _heard(self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        """The parameters' names are the library's."""
        if state_change is ServiceStateChange.Added and name not in self._seen and len(self._seen) < MOST_ADVERTS:
            self._seen.add(name)
            self._names.put_nowait(name)


class _Watch:
    """The list while somebody looks at it: at most a fixed number of rooms, each tried for an answer."""

    def __init__(self, zeroconf: AsyncZeroconf, changed: Callable[[], None]) -> None:
        self._zeroconf = zeroconf
        self._changed = changed
        self._rooms: dict[str, NearbyRoom | None] = {}
        self._servers: dict[str, tuple[SignalServer, ...]] = {}
        self._asked: set[str] = set()
        self._browser: AsyncServiceBrowser | None = None
        self._tasks = Tasks()

    def start(self) -> None:
        self._browser = AsyncServiceBrowser(self._zeroconf.zeroconf, SERVICE, handlers=[self._heard])
        self._tasks.start(self._probe_on(), "rooms nearby")

    def rooms(self) -> tuple[NearbyRoom, ...]:
        return tuple(sorted((room for room in self._rooms.values() if room), key=lambda r: (r.name, r.where)))

    async def close(self) -> None:
        if self._browser is not None:
            await self._browser.async_cancel()
        await self._tasks.close()
        await self._zeroconf.async_close()

    def _heard(self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        """The parameters' names are the library's."""
        if state_change is ServiceStateChange.Removed:
            self._servers.pop(name, None)
            if self._rooms.pop(name, None) is not None:
                self._changed()
        elif name not in self._asked and (name in self._rooms or len(self._rooms) < MOST_ADVERTS):
            self._rooms.setdefault(name, None)
            self._asked.add(name)
            self._tasks.start(self._look_at(name), f"nearby {name}")

    async def _look_at(self, name: str) -> None:
        try:
            await self._look(name)
        finally:
            self._asked.discard(name)

    async def _look(self, name: str) -> None:
        try:
            advert = await _ask(self._zeroconf.zeroconf, name)
        except (OSError, ZeroconfError) as error:
            log.info("an announcement could not be read: %s", error)
            return
        if advert is None or advert.near is None or name not in self._rooms:
            return
        self._servers[name] = advert.servers
        room = NearbyRoom(advert.name, advert.near.link(), reachable=False)
        await self._probe(name, room)

    async def _probe_on(self) -> None:
        while True:
            await asyncio.sleep(PROBE_PERIOD_S)
            for name, room in list(self._rooms.items()):
                if room is not None:
                    await self._probe(name, room)

    async def _probe(self, name: str, room: NearbyRoom) -> None:
        servers = self._servers.get(name, ())
        answers = await asyncio.gather(*(_answers(server) for server in servers))
        seen = replace(room, reachable=any(answers))
        if name in self._rooms and self._rooms[name] != seen:
            self._rooms[name] = seen
            self._changed()


async def _answers(server: SignalServer) -> bool:
    """Heard is not reached: a firewall, or a network that keeps its devices apart, lets one through alone."""
    try:
        async with asyncio.timeout(PROBE_S):
            _reader, writer = await asyncio.open_connection(server.host, server.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
