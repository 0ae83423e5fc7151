"""One call written as a function block with a block for each parameter, read as it comes (spec: rooms §18.5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from app.prompt.ask import Tool
from app.prompt.held_back import held_back
from app.prompt.json_text import in_string
from app.prompt.parameter_types import Allowed, allowed
from app.prompt.pieces import CallArguments, CallBegun, Piece

FUNCTION, PARAMETER, END_FUNCTION, END = "<function=", "<parameter=", "</function>", "</parameter>"
LINE_ENDS = (f"\n{END}\n", f"\n{END}<")
"""A value that began on a line of its own ends with a tag on a line of its own."""
LONGEST_NAME = 256


class XmlCall:
    """``done`` once the block is closed. Raises ValueError for what is no call of a declared tool."""

    def __init__(self, index: int, tools: Mapping[str, Tool]) -> None:
        self.name = ""
        self.done = False
        self._index = index
        self._tools = tools
        self._step: Callable[[], bool] = self._begin
        self._text = ""
        self._allowed = Allowed(frozenset())
        self._value: list[str] = []
        self._fresh = True
        self._count = 0
        self._pieces: list[Piece] = []
        self._fragment: list[str] = []

    def add(self, text: str) -> list[Piece]:
        self._text += text
        while self._step():
            pass
        self._flush()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _begin(self) -> bool:
        name = self._header(FUNCTION)
        if name is None:
            return False
        if name not in self._tools:
            raise ValueError(f"no tool is called {name}")
        self.name, self._step = name, self._body
        self._pieces.append(CallBegun(self._index, name))
        self._fragment.append("{")
        return True

    def _body(self) -> bool:
        """Another parameter, or the end."""
        self._text = self._text.lstrip()
        if self._text.startswith(END_FUNCTION):
            self._text = self._text.removeprefix(END_FUNCTION)
            self._fragment.append("}")
            self.done, self._step = True, self._behind
            return True
        key = None if END_FUNCTION.startswith(self._text) else self._header(PARAMETER)
        if key is not None:
            self._begin_value(key)
        return key is not None

    def _begin_value(self, key: str) -> None:
        self._allowed = allowed(self._tools[self.name].parameters, key)
        self._fragment.append((", " if self._count else "") + json.dumps(key, ensure_ascii=False) + ": ")
        self._fragment += ['"'] if self._allowed.text_only else []
        self._value, self._fresh, self._step = [], True, self._first
        self._count += 1

    def _first(self) -> bool:
        if self._text:
            self._step = self._lines if self._text[0] == "\n" else self._in_line
        return bool(self._text)

    def _lines(self) -> bool:
        return self._until(LINE_ENDS)

    def _in_line(self) -> bool:
        return self._until((END,))

    def _until(self, ends: tuple[str, ...]) -> bool:
        at = min((place for end in ends if (place := self._text.find(end)) >= 0), default=None)
        if at is None:
            safe = len(self._text) - held_back(self._text, ends)
            self._take(self._text[:safe])
            self._text = self._text[safe:]
            return False
        self._take(self._text[:at])
        self._text = self._text[at:].lstrip("\n").removeprefix(END)
        self._end_value()
        return True

    def _take(self, text: str) -> None:
        """The line break behind a parameter's name is not part of its value."""
        if text and self._fresh:
            self._fresh, text = False, text.removeprefix("\n")
        if self._allowed.text_only:
            self._fragment.append(in_string(text))
        else:
            self._value.append(text)

    def _end_value(self) -> None:
        self._fragment.append('"' if self._allowed.text_only else self._allowed.as_json("".join(self._value)))
        self._step = self._body

    def _behind(self) -> bool:
        if self._text.strip():
            raise ValueError("something follows a call")
        return False

    def _header(self, opening: str) -> str | None:
        """What a tag names; None while it is not all there."""
        self._text = self._text.lstrip()
        if not self._text.startswith(opening):
            if opening.startswith(self._text):
                return None
            raise ValueError(f"{opening} is missing")
        name, closed, rest = self._text.removeprefix(opening).partition(">")
        if "\n" in name or "<" in name or len(name) > LONGEST_NAME:
            raise ValueError("a name without end")
        self._text = rest if closed else self._text
        return name.strip() if closed else None

    def _flush(self) -> None:
        fragment = "".join(self._fragment)
        if fragment:
            self._pieces.append(CallArguments(self._index, fragment))
        self._fragment = []
