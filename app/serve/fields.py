"""Reading a request's JSON: every value is checked before it is used, and named when it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

from app.serve.errors import bad
from app.serve.json_values import read_json


def parse(body: bytes) -> Fields:
    """The object a body holds. Raises ApiError for anything else, and for what ``read_json`` does not take."""
    try:
        raw = read_json(body.decode("utf-8-sig"))
    except ValueError as error:
        raise bad("The body is not JSON.", "Send a JSON object in UTF-8.") from error
    if not isinstance(raw, dict):
        raise bad("The body is not a JSON object.")
    return Fields(cast("dict[str, object]", raw))


class Fields:
    """An object's values by name; null counts as absent. Every getter raises ApiError for a value of another kind."""

    def __init__(self, raw: Mapping[str, object], path: str = "") -> None:
        self.raw = raw
        self.path = path

    def has(self, name: str) -> bool:
        return self.raw.get(name) is not None

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def refuse(self, name: str, why: str) -> NoReturn:
        """Raises ApiError that ``name`` ``why``."""
        raise bad(f"'{self.at(name)}' {why}.", param=self.at(name))

    def text(self, name: str, default: str | None = None) -> str:
        """Required without a default."""
        value = self.raw.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.refuse(name, "must be a string")
        return value

    def word(self, name: str, allowed: Sequence[str], default: str) -> str:
        value = self.text(name, default)
        if value not in allowed:
            self.refuse(name, f"must be one of {', '.join(word for word in allowed if word)}")
        return value

    def number(self, name: str, low: float, high: float) -> float | None:
        value = self.raw.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            self.refuse(name, f"must be a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, name: str, low: int, high: int | None = None) -> int | None:
        value = self.raw.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
            limit = f"of at least {low}" if high is None else f"from {low} to {high}"
            self.refuse(name, f"must be a whole number {limit}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.raw.get(name, default)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(name, "must be true or false")
        return value

    def object(self, name: str) -> Fields | None:
        value = self.raw.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.refuse(name, "must be an object")
        return Fields(cast("dict[str, object]", value), self.at(name))

    def list(self, name: str, most: int) -> list[object]:
        """Empty when absent."""
        value = self.raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(name, "must be a list")
        items = cast("list[object]", value)
        if len(items) > most:
            self.refuse(name, f"has more than {most} entries")
        return items

    def objects(self, name: str, most: int) -> list[Fields]:
        items = self.list(name, most)
        return [self._object_of(name, index, item) for index, item in enumerate(items)]

    def texts(self, name: str, most: int) -> list[str]:
        items = self.list(name, most)
        if not all(isinstance(item, str) for item in items):
            self.refuse(name, "must be a list of strings")
        return cast("list[str]", items)

    def _object_of(self, name: str, index: int, item: object) -> Fields:
        if not isinstance(item, dict):
            raise bad(f"'{self.at(name)}[{index}]' must be an object.", param=self.at(name))
        return Fields(cast("dict[str, object]", item), f"{self.at(name)}[{index}]")
