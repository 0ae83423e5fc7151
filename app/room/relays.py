"""Who gives credentials for a relay, and when they are asked for again (spec: rooms §2.4).

A fixed user is part of ``IceConfig``. The other two give credentials that expire: a secret shared with the relay,
from which they are made here, and an address that hands them out. Both belong to a room's creator, who lends what
it got to the members over their links; nobody else learns the secret or the address.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec

from app.core.clock import Clock
from app.core.errors import LinkError
from app.room import messages as m
from app.room.ice import MOST_RELAYS, IceConfig, Relay
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

LIFE_S = 6 * 3600.0
SHORTEST_LIFE_S, LONGEST_LIFE_S = 600.0, 86_400.0
REFRESH_AT = 0.75
RETRY_S = 60.0
ANSWER_S = 2.5
LARGEST_ANSWER = 64 * 1024
LONGEST_TEXT = 1_000

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Lease:
    """Relays with credentials that hold for another ``life`` seconds; no relays where there are none to be had."""

    relays: tuple[Relay, ...]
    life: float


class Lender(Protocol):
    """Gives credentials that expire."""

    async def lend(self) -> Lease:
        """Raises LinkError when there are none just now."""
        ...


@dataclass(frozen=True)
class SharedSecret:
    """Makes credentials from a secret that the relay knows too, as coturn's ``use-auth-secret`` has it.

    ``now`` is the time of day in Unix seconds, which must agree with the relay's.
    """

    url: str
    secret: bytes
    name: str = ""
    now: Callable[[], float] = time.time

    def __repr__(self) -> str:
        return f"SharedSecret({self.url})"

    async def lend(self) -> Lease:
        return Lease((minted(self.url, self.secret, self.now() + LIFE_S, self.name),), LIFE_S)


def minted(url: str, secret: bytes, until: float, name: str = "") -> Relay:
    """Credentials that the relay takes up to ``until``, in Unix seconds."""
    user = f"{int(until)}:{name}" if name else str(int(until))
    digest = hmac.new(secret, user.encode(), hashlib.sha1).digest()
    return Relay(url, user, base64.b64encode(digest).decode())


@dataclass(frozen=True)
class CredentialsUrl:
    """An address that answers a POST with credentials, in the form browsers take, or with 204 for none."""

    url: str
    now: Callable[[], float] = time.time

    async def lend(self) -> Lease:
        problem = LinkError("The address for relay credentials gives none.", "Check it in the settings.")
        try:
            status, content = await _post(self.url)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise problem from error
        if status == 204:
            return Lease((), LIFE_S)
        if status != 200:
            raise problem
        return read_lease(content, self.now())


async def _post(url: str) -> tuple[int, bytes]:
    """Status and content. Raises ValueError for an address of another kind or an endless answer."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("no address of the web")
    limit, headers = aiohttp.ClientTimeout(total=ANSWER_S), {"X-Pooled-Client": "desktop"}
    content = bytearray()
    async with (
        aiohttp.ClientSession(timeout=limit, headers=headers) as http,
        http.post(url, allow_redirects=False) as answer,
    ):
        async for part in answer.content.iter_any():
            content += part
            if len(content) > LARGEST_ANSWER:
                raise ValueError("too long an answer")
        return answer.status, bytes(content)


class _IceServer(msgspec.Struct):
    urls: str | list[str]
    username: str = ""
    credential: str = ""


class _Answer(msgspec.Struct):
    iceServers: list[_IceServer]
    ttl: float = 0.0


def read_lease(content: bytes, now: float) -> Lease:
    """The relays of an answer; STUN servers are left out. Raises LinkError for anything else."""
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise LinkError("The address for relay credentials answers something else.", "Check it.") from error
    relays = [
        Relay(url, server.username, server.credential)
        for server in answer.iceServers
        for url in ([server.urls] if isinstance(server.urls, str) else server.urls)
    ]
    lives = [left for relay in relays if (left := _expiry(relay.user) - now) > 0]
    return usable_lease(relays, answer.ttl or min(lives, default=LIFE_S))


def _expiry(user: str) -> float:
    """The Unix time that a made user name begins with; 0 when it has none."""
    digits = user.partition(":")[0]
    return float(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else 0.0


def usable_lease(relays: list[Relay], life: float) -> Lease:
    """What can be used of relays that came from outside, for a life within bounds."""
    good = (r for r in relays if r.valid and max(len(r.url), len(r.user), len(r.password)) <= LONGEST_TEXT)
    kept = tuple(dict.fromkeys(good))[:MOST_RELAYS]
    return Lease(kept, min(max(life, SHORTEST_LIFE_S), LONGEST_LIFE_S))


def lease_message(lease: Lease) -> m.RelayLease:
    """How a creator tells a member."""
    return m.RelayLease(tuple(m.LentRelay(r.url, r.user, r.password) for r in lease.relays), lease.life)


def read_lease_message(message: m.RelayLease) -> Lease:
    return usable_lease([Relay(r.url, r.user, r.password) for r in message.relays], message.life)


class Relays:
    """The relays one device may use at any time: its own, those of its lender, and those lent by the creator.

    ``on_lease`` gets every lease of the own lender, to be lent on to members. Nothing of it is ever logged.
    """

    def __init__(self, ice: IceConfig, lender: Lender | None, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
        self.on_lease: Callable[[Lease], None] = lambda _lease: None
        self._ice = ice
        self._lender = lender
        self._clock = clock
        self._sleep = sleep
        self._own: tuple[Lease, float] | None = None
        self._lent: tuple[Lease, float] | None = None
        self._tasks = Tasks()
        self._started = False

    async def start(self) -> None:
        """Fetches the first credentials, and from then on new ones in time. A lender that fails is asked again."""
        if self._lender is None or self._started:
            return
        self._started = True
        first = await self._fetch(self._lender)
        self._tasks.start(self._keep(self._lender, first), "relay credentials")

    @property
    def lease(self) -> Lease | None:
        """What members may be lent just now, with the life that is left of it."""
        return self._left(self._own)

    def borrow(self, lease: Lease) -> None:
        """The creator lends its relays; a later lease takes the place of an earlier one."""
        self._lent = (lease, self._clock.now() + lease.life)

    def ice(self) -> IceConfig:
        """For the next connection. Who hides its address behind a relay of its own shows it to no other."""
        own = self._ice.usable + self._relays_of(self._own)
        lent = () if self._ice.relay_only and own else self._relays_of(self._lent)
        return replace(self._ice, relays=own + lent)

    async def close(self) -> None:
        await self._tasks.close()

    def _relays_of(self, held: tuple[Lease, float] | None) -> tuple[Relay, ...]:
        left = self._left(held)
        return left.relays if left else ()

    def _left(self, held: tuple[Lease, float] | None) -> Lease | None:
        if held is None:
            return None
        lease, until = held
        life = until - self._clock.now()
        return replace(lease, life=life) if life > 0 and lease.relays else None

    async def _keep(self, lender: Lender, wait: float) -> None:
        while True:
            await self._sleep(wait)
            wait = await self._fetch(lender)

    async def _fetch(self, lender: Lender) -> float:
        """Seconds until the next time."""
        try:
            lease = await lender.lend()
        except LinkError as error:
            log.warning("%s", error.what)
            return RETRY_S
        self._own = (lease, self._clock.now() + lease.life)
        self.on_lease(lease)
        return REFRESH_AT * lease.life
