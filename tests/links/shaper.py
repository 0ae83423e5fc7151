"""A network with faults, under the datagram sockets that this process's connections open.

Everything a connection sends passes here: checks of paths, handshakes and data. What happens to the n-th datagram of
the n-th socket depends on the seed alone; only the time it is sent comes from the clock.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aioice.ice import StunProtocol

QUEUE_S = 0.2


@dataclass(frozen=True)
class Shape:
    """One direction of a network.

    ``delay`` and ``jitter`` in seconds (the jitter comes on top, 0 to so much, and reorders nothing), ``loss`` as a
    share, ``rate`` in bytes a second with a queue of ``QUEUE_S`` seconds (0: no limit), ``blocked``: nothing passes.
    """

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    rate: float = 0.0
    blocked: bool = False


@dataclass(frozen=True)
class Fate:
    """What was drawn for one datagram."""

    lost: bool
    jitter: float


class Decisions:
    """The draws for one socket's datagrams, in order; a lost one costs as many as one that passes."""

    def __init__(self, seed: int, socket: int) -> None:
        self._draw = random.Random(f"{seed} {socket}")

    def next(self, shape: Shape) -> Fate:
        lost, jitter = self._draw.random(), self._draw.random()
        return Fate(shape.blocked or lost < shape.loss, shape.jitter * jitter)


class Shaper:
    """The network of this process. ``shape`` may be changed at any time, for all that is sent afterwards."""

    def __init__(self, shape: Shape, seed: int = 1) -> None:
        self.shape = shape
        self.sent = self.lost = 0
        self._seed = seed
        self._sockets = 0

    def over(self, transport: Any) -> ShapedTransport:
        self._sockets += 1
        return ShapedTransport(self, transport, Decisions(self._seed, self._sockets))


class ShapedTransport:
    """A datagram transport whose sends take the network's time, or are lost."""

    def __init__(self, shaper: Shaper, transport: Any, decisions: Decisions) -> None:
        self._shaper = shaper
        self._transport = transport
        self._decisions = decisions
        self._pipe_free = 0.0
        self._last = 0.0
        self._closing = False
        self._on_the_way: deque[tuple[bytes, Any]] = deque()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def sendto(self, data: bytes, addr: Any = None) -> None:
        if self._closing:
            return
        shaper, loop = self._shaper, asyncio.get_running_loop()
        fate = self._decisions.next(shaper.shape)
        out = self._through_the_pipe(len(data), loop.time())
        shaper.sent += 1
        if fate.lost or out is None:
            shaper.lost += 1
            return
        at = self._last = max(out + shaper.shape.delay + fate.jitter, self._last)
        self._on_the_way.append((data, addr))
        if at <= loop.time():
            self._deliver()
        else:
            loop.call_at(at, self._deliver)

    def _through_the_pipe(self, size: int, now: float) -> float | None:
        """When the last byte is out; None when the queue before the pipe is full."""
        rate = self._shaper.shape.rate
        if not rate:
            return now
        begins = max(now, self._pipe_free)
        if begins - now > QUEUE_S:
            return None
        self._pipe_free = begins + size / rate
        return self._pipe_free

    def _deliver(self) -> None:
        """The next in order: timers of the same instant come in any."""
        data, addr = self._on_the_way.popleft()
        if not self._transport.is_closing():
            self._transport.sendto(data, addr)
        if self._closing and not self._on_the_way:
            self._transport.close()

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """Closes once all that was sent has left: a network does not take back what is on its way."""
        self._closing = True
        if not self._on_the_way:
            self._transport.close()


@contextmanager
def shaped(shape: Shape, seed: int = 1) -> Iterator[Shaper]:
    """Every connection made inside sends through the returned network, also after the end of the block."""
    shaper, made = Shaper(shape, seed), StunProtocol.connection_made

    def connection_made(protocol: StunProtocol, transport: Any) -> None:
        made(protocol, shaper.over(transport))  # type: ignore[arg-type]

    StunProtocol.connection_made = connection_made  # type: ignore[method-assign]
    try:
        yield shaper
    finally:
        StunProtocol.connection_made = made  # type: ignore[method-assign]
