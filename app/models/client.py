"""HTTP as weight files need it: waits a server asks for are kept, the hub's token goes to the hub alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from app.core.errors import LinkError
from app.models.refusals import pause_before, refusal
from app.models.sources import ANSWER_WITHIN, Location

HUB_TOKEN = "hub token"
"""The name of a person's token among the secrets."""
STALLED = 15.0

_PASSED_ON = frozenset({200, 206, 416})

Token = Callable[[], str]


def no_token() -> str:
    return ""


class Client:
    """Asks for files. Make one with ``open_client``."""

    def __init__(self, session: aiohttp.ClientSession, token: Token) -> None:
        self._session = session
        self._token = token

    @asynccontextmanager
    async def get(
        self, location: Location, name: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """The answer, of status 200, 206 or 416. LinkError for any other, and for one that breaks off in the body."""
        try:
            answer = await self._answer(location, headers)
            async with answer:
                yield answer
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or "no answer"
            raise LinkError(f"The download of {name} broke off: {why}.", "Try again.") from error

    async def _answer(self, location: Location, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        attempt = 0
        while True:
            answer = await self._ask(location, headers)
            if answer.status in _PASSED_ON:
                return answer
            answer.release()
            pause = pause_before(answer.status, answer.headers, attempt)
            if pause is None:
                raise refusal(answer.status, answer.headers)
            await asyncio.sleep(pause)
            attempt += 1

    async def _ask(self, location: Location, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        # Compressed on the way, a file's bytes could not be counted.
        asked = {"Accept-Encoding": "identity", **headers, **self._authority(location)}
        # A redirect to another host goes on without the token: aiohttp drops it with the origin.
        # Not wait_for, which in Python 3.11 can lose a cancellation.
        async with asyncio.timeout(ANSWER_WITHIN):
            return await self._session.get(location.url, headers=asked)

    def _authority(self, location: Location) -> dict[str, str]:
        token = self._token() if location.hub and _is_private(location.url) else ""
        # Printed letters only: what else a person pasted must not become a header of its own.
        return {"Authorization": f"Bearer {token}"} if token.isascii() and token.isprintable() and token else {}


def _is_private(url: str) -> bool:
    """Whether nobody on the way can read what is sent."""
    place = URL(url)
    return place.scheme == "https" or place.host in ("127.0.0.1", "::1", "localhost")


@asynccontextmanager
async def open_client(token: Token = no_token) -> AsyncGenerator[Client]:
    """Gives up a server that does not connect within 5 s, or sends nothing for 15. Proxies are the environment's."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_WITHIN, sock_read=STALLED)
    async with aiohttp.ClientSession(trust_env=True, timeout=timeout) as session:
        yield Client(session, token)
