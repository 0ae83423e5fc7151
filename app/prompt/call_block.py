"""What stands between the tags of one call: a call in either style, or words that only look like one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from app.prompt.ask import Call, Json, Tool
from app.prompt.calls_json import JsonCall
from app.prompt.calls_xml import XmlCall
from app.prompt.json_text import read_json
from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Piece


class CallBlock:
    """``constrained``: a grammar holds the block to its form, so pieces are given at once; without one they wait
    until the block is whole."""

    def __init__(self, index: int, tools: Mapping[str, Tool], *, constrained: bool) -> None:
        self.begun = ""
        self._words: list[str] = []
        self._index = index
        self._tools = tools
        self._constrained = constrained
        self._reader: JsonCall | XmlCall | None = None
        self._broken = False
        self._waiting: list[Piece] = []
        self._arguments: list[str] = []

    def add(self, text: str, *, tag: bool = False) -> list[Piece]:
        self._words += [] if tag else [text]
        pieces = [] if self._broken else self._read(text)
        self._arguments += [piece.text for piece in pieces if isinstance(piece, CallArguments)]
        self._waiting += pieces
        return self._shown() if self._constrained else []

    @property
    def words(self) -> str:
        """All that stood in it, without tags."""
        return "".join(self._words).strip()

    @property
    def whole(self) -> bool:
        return not self._broken and self._reader is not None and self._reader.done

    def close(self) -> tuple[list[Piece], Call | None]:
        """The last pieces and the call; no call when the block is none, or not a whole one."""
        try:
            arguments = read_json("".join(self._arguments)) if self.whole else None
        except ValueError:
            arguments = None
        if self._reader is None or not isinstance(arguments, dict):
            return [], None
        return [*self._shown(), CallEnded(self._index)], Call(self._reader.name, cast(Json, arguments))

    def _shown(self) -> list[Piece]:
        shown, self._waiting = self._waiting, []
        self.begun = next((piece.name for piece in shown if isinstance(piece, CallBegun)), self.begun)
        return shown

    def _read(self, text: str) -> list[Piece]:
        if self._reader is None:
            text = text.lstrip()
            if not text:
                return []
            self._reader = (XmlCall if text[0] == "<" else JsonCall)(self._index, self._tools)
        try:
            return self._reader.add(text)
        except ValueError:
            self._broken = True
            return []
