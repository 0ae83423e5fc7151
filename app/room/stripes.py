"""The further connections of links: dialed, proved, taken in, dialed again (spec: rooms §4, §9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from app.core.clock import Clock
from app.core.errors import LinkError
from app.room.dialer import Dialer
from app.room.line import Line
from app.room.link import PeerLink
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

MAX_STRIPES = 8
MAX_EARLY = 32
EARLY_S = 10.0
REDIAL_S = 1.0
DIALS = 6


class Stripes:
    """Keeps each link at ``count`` connections, the main one included.

    ``prove`` runs the mesh handshake on a stripe and raises LinkError when it fails; ``links`` are the
    live ones by peer id.
    """

    def __init__(
        self,
        dialer: Dialer,
        links: Mapping[str, PeerLink],
        prove: Callable[[Line], Awaitable[object]],
        count: int,
        clock: Clock,
    ) -> None:
        self._dialer = dialer
        self._links = links
        self._prove = prove
        self._count = min(count, MAX_STRIPES)
        self._clock = clock
        self._early: dict[Line, float] = {}
        self._tasks = Tasks()

    def link_up(self, link: PeerLink, may_dial: bool) -> None:
        """Takes in stripes that came before their link; the end that dialed the link dials the others."""
        for line in [line for line in self._early if line.peer_id == link.peer_id]:
            self._forget(line)
            self._tasks.start(self._add(link, line), f"stripe {link.peer_id}")
        if not (link.dialed and may_dial):
            return
        link.on_stripe_lost = lambda: self._dial(link, REDIAL_S)
        for _ in range(self._count - 1):
            self._dial(link)

    def arrived(self, line: Line) -> None:
        """Another device has opened a stripe."""
        link = self._links.get(line.peer_id)
        if link is not None and link.stripes < 2 * MAX_STRIPES:
            self._tasks.start(self._add(link, line), f"stripe {line.peer_id}")
        elif link is None and len(self._early) < MAX_EARLY:
            self._early[line] = self._clock.now()
            line.on_closed = lambda _reason: self._forget(line)
        else:
            line.close("too many stripes")

    def tick(self) -> None:
        """Closes stripes whose link did not come up."""
        limit = self._clock.now() - EARLY_S
        for line in [line for line, since in self._early.items() if since < limit]:
            line.close("its link did not come up")

    async def close(self) -> None:
        await self._tasks.close()

    def _forget(self, line: Line) -> None:
        self._early.pop(line, None)

    def _dial(self, link: PeerLink, delay: float = 0.0) -> None:
        self._tasks.start(self._dial_until_up(link, delay), f"dial stripe {link.peer_id}")

    async def _dial_until_up(self, link: PeerLink, delay: float) -> None:
        for tries in range(DIALS):
            await asyncio.sleep(delay)
            if not link.open:
                return
            line = await self._dialed(link)
            if line is not None:
                await self._add(link, line)
                return
            delay = REDIAL_S * 2**tries

    async def _dialed(self, link: PeerLink) -> Line | None:
        try:
            return await self._dialer.dial(link.peer_id, stripe=True)
        except LinkError as error:
            log.info("a stripe to %s: %s", link.peer_id, error.what)
            return None

    async def _add(self, link: PeerLink, line: Line) -> None:
        try:
            await self._prove(line)
        except LinkError as error:
            log.info("a stripe of %s: %s", link.peer_id, error.what)
        else:
            link.add_stripe(line)
