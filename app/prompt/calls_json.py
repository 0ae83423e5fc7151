"""One call written as a JSON object with a name and arguments, read as it comes (spec: rooms §18.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.prompt.ask import Tool
from app.prompt.json_text import Place, ValueScan, in_string, read_json
from app.prompt.pieces import CallArguments, CallBegun, Piece

WHITE = " \t\r\n"


class JsonCall:
    """``done`` once the object is closed. Raises ValueError for what is no call of a declared tool."""

    def __init__(self, index: int, tools: Mapping[str, Tool]) -> None:
        self.name = ""
        self.done = False
        self._index = index
        self._tools = tools
        self._read: Callable[[str], None] = self._start
        self._scan = ValueScan()
        self._key = ""
        self._value: list[str] = []
        self._arguments: str | None = None
        self._pieces: list[Piece] = []
        self._fragment: list[str] = []

    def add(self, text: str) -> list[Piece]:
        for char in text:
            self._read(char)
        self._flush()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _start(self, char: str) -> None:
        self._expect(char, {"{": self._first_key})

    def _first_key(self, char: str) -> None:
        self._expect(char, {'"': self._in_key, "}": self._behind})

    def _next(self, char: str) -> None:
        self._expect(char, {",": self._before_key, "}": self._behind})

    def _before_key(self, char: str) -> None:
        self._expect(char, {'"': self._in_key})

    def _colon(self, char: str) -> None:
        self._expect(char, {":": self._before_value})

    def _expect(self, char: str, then: Mapping[str, Callable[[str], None]]) -> None:
        if char in WHITE:
            return
        if char not in then:
            raise ValueError(f"{char} is out of place")
        self._read = then[char]
        if self._read == self._in_key:
            self._begin(char)
        elif self._read == self._behind:
            self._close()

    def _begin(self, char: str) -> Place:
        self._scan, self._value = ValueScan(), [char]
        return self._scan.add(char)

    def _in_key(self, char: str) -> None:
        self._value.append(char)
        if self._scan.add(char) is Place.LAST:
            self._key = str(read_json("".join(self._value)))
            self._read = self._colon

    def _before_value(self, char: str) -> None:
        if char in WHITE:
            return
        self._scan, self._value = ValueScan(), []
        self._read = self._in_value
        self._in_value(char)

    def _in_value(self, char: str) -> None:
        """A line break in a string, which JSON does not allow, is escaped."""
        if self._scan.in_string and char < " ":
            char = in_string(char)
        place = self._scan.add(char[-1])
        if place is Place.BEHIND:
            self._end_value()
            self._next(char)
            return
        self._value.append(char)
        if self._streams:
            self._fragment.append(char)
        if place is Place.LAST:
            self._end_value()

    @property
    def _streams(self) -> bool:
        return self._key == "arguments" and bool(self.name) and self._value[0] == "{"

    def _end_value(self) -> None:
        self._read = self._next
        text = "".join(self._value)
        value = read_json(text)
        if self._key == "name":
            self._begun(value)
        elif self._key == "arguments":
            self._argued(text, value)

    def _begun(self, name: object) -> None:
        if self.name or not isinstance(name, str) or name not in self._tools:
            raise ValueError(f"no tool is called {name}")
        self.name = name
        self._pieces.append(CallBegun(self._index, name))
        self._fragment += [self._arguments] if self._arguments else []

    def _argued(self, text: str, value: object) -> None:
        """Some models write the arguments as JSON in a string."""
        quoted = isinstance(value, str)
        text, value = (value, read_json(value)) if isinstance(value, str) else (text, value)
        if not isinstance(value, dict) or self._arguments is not None:
            raise ValueError("arguments are one object")
        self._arguments = text
        if quoted and self.name:
            self._fragment.append(text)

    def _close(self) -> None:
        if not self.name:
            raise ValueError("a call without a name")
        if self._arguments is None:
            self._fragment.append("{}")
        self.done = True

    def _behind(self, char: str) -> None:
        if char not in WHITE:
            raise ValueError(f"{char} follows a call")

    def _flush(self) -> None:
        if self._fragment:
            self._pieces.append(CallArguments(self._index, "".join(self._fragment)))
            self._fragment = []
