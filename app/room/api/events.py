"""What a program hears while the room answers it (spec: rooms §18.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from app.core.errors import RoomError
from app.prompt.ask import Ask
from app.prompt.pieces import Piece


@dataclass(frozen=True)
class ServedModel:
    """The model that runs now. ``context`` in tokens; ``tools``: its template knows how to call them."""

    key: str
    label: str
    context: int
    tools: bool = True


@dataclass(frozen=True)
class Queued:
    """``ahead`` answers come before it."""

    ahead: int


@dataclass(frozen=True)
class Started:
    """The prompt is being read."""

    model: str
    prompt_tokens: int
    context: int


@dataclass(frozen=True)
class Spoken:
    """``pieces`` of one token, or of none where the end set text free."""

    pieces: tuple[Piece, ...]


class Reason(Enum):
    """Why an answer ended."""

    STOP = "stop"
    STOP_SEQUENCE = "stop_seq"
    MOST_TOKENS = "max"
    CONTEXT = "ctx"
    ABORTED = "abort"
    FAILED = "error"


@dataclass(frozen=True)
class Usage:
    """Tokens: of the prompt, of those that were in the caches already, of the answer, and of its reasoning."""

    prompt: int = 0
    reused: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Ended:
    """Always last after Started. ``stop``: the stop sequence that ended it; ``why``: of ABORTED and FAILED.

    A call whose CallEnded never came was cut.
    """

    reason: Reason
    usage: Usage = Usage()
    stop: str = ""
    why: str = ""


class Refusal(Enum):
    """Why an ask was not answered at all."""

    QUEUE = "queue"
    CONTEXT = "ctx"
    BAD = "bad"
    OFF = "off"
    DEGRADED = "degraded"
    LOADING = "loading"
    GONE = "gone"
    SILENT = "silent"
    FAILED = "error"


@dataclass(frozen=True)
class Refused:
    """Always last. With CONTEXT: the prompt has ``tokens`` of the ``most`` there is room for."""

    code: Refusal
    why: str
    tokens: int = 0
    most: int = 0


class AskRefused(RoomError):
    """An ask that was not answered, where no stream tells of it."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.why, "Try again.")
        self.refused = refused


AskEvent = Queued | Started | Spoken | Ended | Refused


class AskStream(Protocol):
    """The answer to one ask; ends after Ended or Refused. Closing it early frees the room within a lap."""

    def __aiter__(self) -> AsyncIterator[AskEvent]: ...

    def close(self) -> None: ...


class Answers(Protocol):
    """The room as a program sees it; all calls on the event loop's thread."""

    @property
    def model(self) -> ServedModel | None:
        """None while none runs."""
        ...

    @property
    def room(self) -> str:
        """The room's code, "" outside of one."""
        ...

    def ask(self, ask: Ask) -> AskStream:
        """Never raises: what goes wrong is told by the stream."""
        ...

    async def count(self, ask: Ask) -> int:
        """Tokens of the ask's prompt. AskRefused where the room cannot say."""
        ...
