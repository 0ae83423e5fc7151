"""A proved link to one peer: messages, and frames over several connections (spec: rooms §4, §5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from app.core.clock import Clock
from app.room.frame import Frame
from app.room.frame_messages import frame_message, read_frame_message
from app.room.keepalive import BYTE, PERIOD_S, KeepAlive
from app.room.line import Line
from app.room.ports import Message
from app.room.wire import DOUBLED_SLICES, Outlet, WireReceiver, WireSender

log = logging.getLogger(__name__)

COPY_AFTER_S = 0.003
"""How long a frame may be without its acknowledgement before it is sent a second time."""


class _WireOutlet:
    """One connection's wire channel as the sender sees it."""

    def __init__(self, line: Line) -> None:
        self._connection = line.connection

    @property
    def backlog(self) -> int:
        return self._connection.wire_backlog

    @property
    def acknowledged(self) -> bool:
        return self._connection.acknowledged

    def send(self, data: bytes) -> bool:
        return self._connection.send_wire(data)


def _repeat_unacknowledged(first: Outlet, copy: Callable[[], None]) -> None:
    """A copy costs both ends as much work as the slice itself, and on a quick path holds up the next device."""
    assert isinstance(first, _WireOutlet)
    asyncio.get_running_loop().call_later(COPY_AFTER_S, lambda: None if first.acknowledged else copy())


class PeerLink:
    """Satisfies ``ports.Link``. ``rtt`` is the last round trip in seconds, 0 before any pong was seen.

    ``on_gone`` and ``on_stripe_lost`` are for the link's maker: the link has ended; one of its extra
    connections has, while the link lives.
    """

    def __init__(self, line: Line, clock: Clock, keepalive: bool = True, doubled: int = DOUBLED_SLICES) -> None:
        self.peer_id = line.peer_id
        self.dialed = line.dialed
        self.on_message: Callable[[Message], None] = lambda _message: None
        self.on_frame: Callable[[Frame], None] = lambda _frame: None
        self.on_closed: Callable[[str], None] = lambda _reason: None
        self.on_gone: Callable[[], None] = lambda: None
        self.on_stripe_lost: Callable[[], None] = lambda: None
        self.rtt = 0.0
        self._main = line
        self._lines: list[Line] = []
        self._clock = clock
        self._sender = WireSender(doubled, _repeat_unacknowledged)
        self._receiver = WireReceiver(clock)
        self._keepalive = KeepAlive() if keepalive else None
        self._keepalive_timer: asyncio.TimerHandle | None = None
        self._gap_timer: asyncio.TimerHandle | None = None

    @property
    def open(self) -> bool:
        return self._main.open

    @property
    def path(self) -> str:
        return self._main.connection.path

    @property
    def binding(self) -> str:
        return self._main.binding

    @property
    def peer_fingerprint(self) -> str:
        """Of the certificate the peer shows on this link: 64 hex digits."""
        return self._main.connection.peer_fingerprint

    @property
    def peer_address(self) -> str:
        """Where the peer is reached, "" while that is not known."""
        return self._main.connection.peer_address

    @property
    def last_heard(self) -> float:
        return max([self._main.last_heard, *(line.last_heard for line in self._lines)])

    @property
    def stripes(self) -> int:
        """How many connections carry this link."""
        return len(self._lines)

    @property
    def backlog(self) -> int:
        """Bytes of control messages that wait to be sent."""
        return self._main.connection.control_backlog

    def start(self, kept: Sequence[Message] = ()) -> None:
        """Begins to deliver, first the messages that were kept during the proof. Set the callbacks before."""
        self._main.on_closed = self._main_closed
        self._attach(self._main)
        for message in kept:
            self._deliver(message)
        self._main.listen(self._deliver)
        if not self._main.open:
            self._main_closed("closed")

    def add_stripe(self, line: Line) -> None:
        """One more connection for frames; it has been proved."""
        if not self.open or not line.open:
            line.close("its link has ended")
            return
        line.on_closed = lambda _reason: self._stripe_closed(line)
        line.listen(lambda _message: None)
        self._attach(line)

    def send(self, message: Message) -> None:
        self._main.send(message)

    def send_frame(self, frame: Frame) -> None:
        """Over the wire channels; as a control message when none is open. Quiet when the link has died.

        Raises ProtocolError for a frame that the header cannot hold.
        """
        if not self.open:
            return
        outlets = [_WireOutlet(line) for line in self._lines if line.connection.wire_open]
        if not self._sender.send(frame, outlets):
            self._main.send(frame_message(frame))
        if self._keepalive is not None:
            self._keepalive.frame_sent(self._clock.now())
            self._arm_keepalive()

    def close(self, reason: str = "") -> None:
        self._main.close(reason or "closed")

    def _attach(self, line: Line) -> None:
        self._lines.append(line)
        self._receiver.attach(line)
        line.connection.on_wire = lambda data: self._slice(line, data)
        line.connection.release_wire()

    def _main_closed(self, reason: str) -> None:
        self._cancel_timers()
        stripes, self._lines = [line for line in self._lines if line is not self._main], []
        for line in stripes:
            line.on_closed = lambda _reason: None
            line.close(reason)
        self.on_gone()
        self.on_closed(reason)

    def _stripe_closed(self, line: Line) -> None:
        if line in self._lines:
            self._lines.remove(line)
            self._frames(self._receiver.closed(line))
            self.on_stripe_lost()

    def _cancel_timers(self) -> None:
        for timer in (self._gap_timer, self._keepalive_timer):
            if timer is not None:
                timer.cancel()
        self._gap_timer = self._keepalive_timer = None

    def _deliver(self, message: Message) -> None:
        if not self.open:
            return
        frame = read_frame_message(message)
        if frame is not None:
            self._frames([frame])
            return
        if message.get("t") == "pong":
            self._measure(message.get("ts"))
        self.on_message(message)

    def _measure(self, stamp: object) -> None:
        """A pong carries our ping's milliseconds."""
        if isinstance(stamp, int | float):
            self.rtt = max(0.0, self._clock.now() - stamp / 1000)

    def _slice(self, line: Line, data: bytes) -> None:
        self._frames(self._receiver.receive(line, data))

    def _frames(self, frames: Sequence[Frame]) -> None:
        """The border where a peer's bad frame ends, whatever it set off."""
        for frame in frames:
            try:
                self.on_frame(frame)
            except Exception:
                log.exception("a frame from %s went wrong", self.peer_id)
        if not self.open:
            return
        if frames and self._keepalive is not None:
            self._keepalive.frame_received(self._clock.now())
            self._arm_keepalive()
        self._arm_gap()

    def _arm_gap(self) -> None:
        if self._gap_timer is not None:
            self._gap_timer.cancel()
            self._gap_timer = None
        deadline = self._receiver.deadline
        if deadline is not None:
            wait = max(0.0, deadline - self._clock.now())
            self._gap_timer = asyncio.get_running_loop().call_later(wait, self._gap_over)

    def _gap_over(self) -> None:
        self._gap_timer = None
        self._frames(self._receiver.tick())

    def _arm_keepalive(self) -> None:
        if self._keepalive_timer is None and self.open:
            self._keepalive_timer = asyncio.get_running_loop().call_later(PERIOD_S, self._keepalive_tick)

    def _keepalive_tick(self) -> None:
        self._keepalive_timer = None
        if self._keepalive is None or not self._keepalive.active(self._clock.now()):
            return
        open_lines = [line for line in self._lines if line.connection.wire_open]
        index = self._keepalive.tick(self._clock.now(), [line.connection.keepalive_backlog for line in open_lines])
        if index is not None:
            open_lines[index].connection.send_keepalive(BYTE)
        self._arm_keepalive()
