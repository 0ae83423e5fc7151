"""This device's own programs in the room: their asks go to whichever device runs the model, which may be this one."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from app.core.clock import Clock
from app.core.errors import PooledError
from app.prompt.ask import Ask
from app.room import messages as m
from app.room.api.events import AskEvent, AskRefused, Ended, Queued, Refusal, Refused
from app.room.api.wire import ask_message, read_event

SILENT_S = 300.0
SILENT_QUEUED_S = 1_800.0
GONE = "The room lost the device that runs the model."
SILENT = "The room has not answered for too long."


@dataclass(frozen=True)
class ClientPorts:
    """``send`` takes a message to the device that runs the model; ``ours`` says whether that is of our own kind."""

    clock: Clock
    send: Callable[[m.Message], None]
    reachable: Callable[[], bool]
    ours: Callable[[], bool]


class AskClient:
    """Asks under way, by the name this device gave each."""

    def __init__(self, ports: ClientPorts) -> None:
        self._ports = ports
        self._open: dict[str, ClientStream] = {}

    def ask(self, ask: Ask) -> ClientStream:
        """Never raises; what goes wrong is told by the stream."""
        return self._begin(ask, count=False)

    async def count(self, ask: Ask) -> int:
        """Tokens of the ask's prompt. AskRefused where the room cannot say."""
        stream = self._begin(ask, count=True)
        async for event in stream:
            match event:
                case Ended():
                    return event.usage.prompt
                case Refused():
                    raise AskRefused(event)
                case _:
                    pass
        raise AskRefused(Refused(Refusal.GONE, GONE))

    def _begin(self, ask: Ask, *, count: bool) -> ClientStream:
        stream = ClientStream(secrets.token_urlsafe(12), self)
        ours = self._ports.ours()
        if not self._ports.reachable():
            stream.heard(Refused(Refusal.GONE, "There is nobody in this room that runs a model."))
        elif count and not ours:
            stream.heard(Refused(Refusal.BAD, "The device that runs the model has a program that cannot count tokens."))
        else:
            self._send(stream, ask, ours=ours, count=count)
        return stream

    def _send(self, stream: ClientStream, ask: Ask, *, ours: bool, count: bool) -> None:
        try:
            message = ask_message(ask, stream.rid, ours=ours, count=count)
            self._open[stream.rid] = stream
            stream.since = self._ports.clock.now()
            self._ports.send(message)
        except (PooledError, ValueError) as error:
            stream.heard(Refused(Refusal.BAD, f"The request cannot be sent: {error}"))

    def heard(self, message: m.Message) -> bool:
        """Takes a message about an ask of this device; False for all others."""
        rid = m.rid_of(message)
        if not rid:
            return False
        stream, event = self._open.get(rid), read_event(message)
        if stream is not None and event is not None:
            stream.since = self._ports.clock.now()
            stream.heard(event)
        return True

    def alive(self) -> None:
        """The device that runs the model is at work, if only on a long prompt."""
        for stream in self._open.values():
            stream.since = self._ports.clock.now()

    def gone(self, why: str = GONE) -> None:
        """Nobody is left who would answer."""
        for stream in list(self._open.values()):
            stream.heard(Refused(Refusal.GONE, why))

    def tick(self) -> None:
        now = self._ports.clock.now()
        for stream in list(self._open.values()):
            if now - stream.since > (SILENT_QUEUED_S if stream.queued else SILENT_S):
                self.stop(stream)
                stream.heard(Refused(Refusal.SILENT, SILENT))

    def stop(self, stream: ClientStream) -> None:
        if self._open.pop(stream.rid, None) is not None:
            self._ports.send(m.StopAnswer(rid=stream.rid))

    def over(self, stream: ClientStream) -> None:
        self._open.pop(stream.rid, None)


class ClientStream:
    """``events.AskStream``. ``since``: when something was heard of it last."""

    def __init__(self, rid: str, client: AskClient) -> None:
        self.rid = rid
        self.since = 0.0
        self.queued = False
        self._client = client
        self._events: deque[AskEvent] = deque()
        self._news = asyncio.Event()
        self._ended = False

    def heard(self, event: AskEvent) -> None:
        if self._ended:
            return
        self.queued = isinstance(event, Queued)
        if isinstance(event, Ended | Refused):
            self._ended = True
            self._client.over(self)
        self._events.append(event)
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[AskEvent]:
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if isinstance(event, Ended | Refused):
                    return
            if self._ended:
                return
            self._news.clear()
            await self._news.wait()

    def close(self) -> None:
        """The room is free again after the lap in flight."""
        self._ended = True
        self._news.set()
        self._client.stop(self)
