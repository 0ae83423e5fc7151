"""JSON as a model writes it, a character at a time: where a value ends, and what it says."""

from __future__ import annotations

import json
from enum import Enum
from typing import NoReturn

from app.core.errors import PromptError

DEEPEST = 64


class Place(Enum):
    """Where a character stands to the value that is read."""

    INSIDE = 0
    LAST = 1
    BEHIND = 2


class ValueScan:
    """Finds the end of one JSON value without judging what is in it."""

    def __init__(self) -> None:
        self.in_string = False
        self._escaped = False
        self._depth = 0

    def add(self, char: str) -> Place:
        if self.in_string:
            return self._string(char)
        if char == '"':
            self.in_string = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            return self._closing()
        elif not self._depth and char in ", \t\r\n":
            return Place.BEHIND
        return Place.INSIDE

    def _string(self, char: str) -> Place:
        if self._escaped or char == "\\":
            self._escaped = not self._escaped
        elif char == '"':
            self.in_string = False
            return Place.INSIDE if self._depth else Place.LAST
        return Place.INSIDE

    def _closing(self) -> Place:
        if not self._depth:
            return Place.BEHIND
        self._depth -= 1
        return Place.INSIDE if self._depth else Place.LAST


def read_json(text: str) -> object:
    """ValueError for what is no JSON: also NaN, numbers without end and nesting without end."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def in_string(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def too_deep() -> PromptError:
    return PromptError("Something in the request is nested too deeply.", f"At most {DEEPEST} levels are read.")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
