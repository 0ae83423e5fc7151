"""Finding a room by its typed code on the local network, without telling the network the code.

A creator announces a random salt and the code's scrypt hash under it. Whoever knows the code can tell that the
announcement is meant; whoever does not would have to try codes at tens of milliseconds each, and a code alone
still lets nobody in.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from zeroconf import Error as ZeroconfError
from zeroconf import IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from app.room.lan_address import LOOPBACK
from app.room.signal_servers import SignalServer

log = logging.getLogger(__name__)

SERVICE = "_pooled-room._tcp.local."
SEARCH_S = 3.0
ASK_S = 1.0
MOST_ADVERTS = 16
MOST_ADDRESSES = 4
SALT_BYTES = 16
HASH_BYTES = 32
TIME_TO_LIVE = 120

# scrypt's cost: 16 MB and some tens of milliseconds a guess.
_N, _R, _P = 1 << 14, 8, 1

OpenZeroconf = Callable[[], AsyncZeroconf]


@dataclass(frozen=True)
class Advert:
    """What one announcement says: where its room server is, and which code it answers to."""

    salt: bytes
    hash: bytes
    addresses: tuple[str, ...]
    port: int

    def meant_by(self, code: str) -> bool:
        """Costs tens of milliseconds: call it off the event loop."""
        return hmac.compare_digest(hashed(code, self.salt), self.hash)

    @property
    def servers(self) -> tuple[SignalServer, ...]:
        return tuple(SignalServer(address, self.port, secure=False) for address in self.addresses)


def hashed(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=_N, r=_R, p=_P, dklen=HASH_BYTES)


def read_advert(info: AsyncServiceInfo) -> Advert | None:
    """The announcement as it came from the network; None when it is none of ours."""
    said = info.properties
    salt, digest, port = _unhex(said.get(b"s")), _unhex(said.get(b"h")), info.port
    if len(salt) != SALT_BYTES or len(digest) != HASH_BYTES or not port:
        return None
    near = [address for address in info.parsed_addresses(IPVersion.All) if _near(address)]
    return Advert(salt, digest, tuple(near[:MOST_ADDRESSES]), port) if near else None


def _unhex(text: bytes | None) -> bytes:
    try:
        return bytes.fromhex((text or b"").decode())
    except ValueError:
        return b""


def _near(address: str) -> bool:
    """An announcement that sends people out to the internet is not believed."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return ip.is_private and not ip.is_link_local and not ip.is_unspecified


class Nearby:
    """Announces the own room and looks for others'. Without multicast both quietly do nothing."""

    def __init__(self, open_zeroconf: OpenZeroconf = AsyncZeroconf) -> None:
        self._open_zeroconf = open_zeroconf
        self._announced: AsyncZeroconf | None = None

    async def announce(self, code: str, address: str, port: int) -> None:
        """Until ``close``. A room that only this computer can reach is not announced."""
        if self._announced is not None or (address == LOOPBACK and self._open_zeroconf is AsyncZeroconf):
            return
        try:
            info = await asyncio.to_thread(_info, code, address, port)
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

    async def close(self) -> None:
        announced, self._announced = self._announced, None
        if announced is not None:
            await announced.async_unregister_all_services()
            await announced.async_close()


def _info(code: str, address: str, port: int) -> AsyncServiceInfo:
    salt, name = secrets.token_bytes(SALT_BYTES), secrets.token_hex(6)
    properties = {"s": salt.hex(), "h": hashed(code, salt).hex()}
    return AsyncServiceInfo(
        SERVICE,
        f"{name}.{SERVICE}",
        port=port,
        properties=properties,
        # A name of its own: the computer's would tell whose room it is.
        server=f"pooled-{name}.local.",
        parsed_addresses=[address],
        host_ttl=TIME_TO_LIVE,
        other_ttl=TIME_TO_LIVE,
    )


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
                advert = await self._advert(await self._names.get())
                if advert is not None and await asyncio.to_thread(advert.meant_by, self._code):
                    return advert.servers
        finally:
            await browser.async_cancel()

    def _heard(self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        """The parameters' names are the library's."""
        if state_change is ServiceStateChange.Added and name not in self._seen and len(self._seen) < MOST_ADVERTS:
            self._seen.add(name)
            self._names.put_nowait(name)

    async def _advert(self, name: str) -> Advert | None:
        info = AsyncServiceInfo(SERVICE, name)
        found = await info.async_request(self._zeroconf, ASK_S * 1000)
        return read_advert(info) if found else None
