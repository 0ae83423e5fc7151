"""An answer's pieces as blocks that open, grow and close: reasoning, text, and calls of tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Piece, Reasoning, Words


class Kind(Enum):
    REASONING = "reasoning"
    TEXT = "text"
    CALL = "call"


@dataclass
class Block:
    """``whole`` once it closed by itself; a call the end cut never is. ``id`` is for who writes it."""

    kind: Kind
    place: int
    name: str = ""
    whole: bool = False
    id: str = ""
    _texts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """What it says, or a call's arguments as JSON."""
        return "".join(self._texts)

    def add(self, text: str) -> None:
        self._texts.append(text)


@dataclass(frozen=True)
class Opened:
    block: Block


@dataclass(frozen=True)
class Grown:
    block: Block
    text: str


@dataclass(frozen=True)
class Closed:
    block: Block


Change = Opened | Grown | Closed


class Blocks:
    """One block is open at a time. ``hold_space``: white space waits until its block has something to say.

    After a call it always does.
    """

    def __init__(self, *, hold_space: bool) -> None:
        self.all: list[Block] = []
        self._hold_space = hold_space
        self._held = ""
        self._open: Block | None = None

    def add(self, piece: Piece) -> list[Change]:
        if isinstance(piece, Words):
            return self._say(Kind.TEXT, piece.text)
        if isinstance(piece, Reasoning):
            return self._say(Kind.REASONING, piece.text)
        if isinstance(piece, CallBegun):
            return [*self._close(whole=True), self._begin(Kind.CALL, piece.name)]
        if isinstance(piece, CallArguments):
            return self._grow(piece.text)
        assert isinstance(piece, CallEnded)
        return self._close(whole=True)

    def end(self) -> list[Change]:
        """The answer is over: a call that is still open was cut."""
        return self._close(whole=self._open is not None and self._open.kind is not Kind.CALL)

    def of(self, kind: Kind) -> list[Block]:
        return [block for block in self.all if block.kind is kind]

    def _say(self, kind: Kind, text: str) -> list[Change]:
        if not text:
            return []
        if self._open is not None and self._open.kind is kind:
            return self._grow(text)
        if text.isspace() and (self._hold_space or self._after_call):
            self._held += text
            return []
        closed = self._close(whole=True)
        said, self._held = self._held + text, ""
        return [*closed, self._begin(kind), *self._grow(said)]

    @property
    def _after_call(self) -> bool:
        """White space between calls is no text."""
        return bool(self.all) and self.all[-1].kind is Kind.CALL

    def _begin(self, kind: Kind, name: str = "") -> Opened:
        self._held = ""
        self._open = Block(kind, len(self.all), name)
        self.all.append(self._open)
        return Opened(self._open)

    def _grow(self, text: str) -> list[Change]:
        if self._open is None or not text:
            return []
        self._open.add(text)
        return [Grown(self._open, text)]

    def _close(self, *, whole: bool) -> list[Change]:
        closed, self._open = self._open, None
        if closed is None:
            return []
        closed.whole = whole
        return [Closed(closed)]
