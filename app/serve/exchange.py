"""One ask on its way through the line, the room and the checker."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from app.prompt.ask import Ask
from app.room.api.events import Answers, AskEvent, Ended, Queued, Reason, Refused, Spoken, Started
from app.serve.checker import Checker
from app.serve.errors import ApiError, Problem, error_of_end, error_of_refusal
from app.serve.line import Line
from app.serve.writing import Writer


class Exchange:
    """``ask`` None asks nothing: the answer is empty, as programs that try a connection expect."""

    def __init__(self, answers: Answers, line: Line, ask: Ask | None) -> None:
        self._answers = answers
        self._line = line
        self._ask = ask
        self._ticket = line.enter() if ask is not None else None
        self._ahead_in_room = 0
        self.answered = False
        """Whether the room said that the answer is whole."""

    @property
    def ahead(self) -> int:
        """Answers that come before this one, here and in the room."""
        return self._ahead_in_room + (self._ticket.ahead if self._ticket else 0)

    def leave(self) -> None:
        if self._ticket is not None:
            self._ticket.leave()

    async def bytes(self, writer: Writer) -> AsyncGenerator[bytes]:
        """What ``writer`` makes of the answer. Raises ApiError where it is refused, fails or cannot be.

        Left early, by a client that hangs up, it closes the room's stream at once. Whoever waits behind it need not
        wait until the client has read the end.
        """
        if self._ask is None or self._ticket is None:
            self.answered = True
            yield writer.open(Started("", 0, 0)) + writer.close(Ended(Reason.STOP))
            return
        await self._ticket.turn.wait()
        stream, checker, last = self._answers.ask(self._ask), Checker(self._ask), b""
        try:
            async for event in stream:
                checker.check(event)
                if isinstance(event, Started):
                    self._ticket.begun()
                part = self._written(event, writer)
                if isinstance(event, Ended):
                    last, self.answered = part, True
                else:
                    yield part
        finally:
            stream.close()
            self.leave()
        if not self.answered:
            raise ApiError(Problem.FAILED, "The answer broke off.", "Ask again.", code="protocol")
        yield last

    def _written(self, event: AskEvent, writer: Writer) -> bytes:
        if isinstance(event, Spoken):
            return writer.say(event)
        if isinstance(event, Started):
            self._ahead_in_room = 0
            return writer.open(event)
        if isinstance(event, Queued):
            self._ahead_in_room = event.ahead
            return b""
        if isinstance(event, Refused):
            raise error_of_refusal(event)
        if error := error_of_end(event):
            raise error
        return writer.close(event)
