"""Responses kept in memory for a while, so that a client may go on from one (spec: product A-052)."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Protocol

from app.prompt.ask import Json
from app.serve.errors import ApiError, Problem, bad

MOST_RESPONSES = 256
MOST_BYTES = 64 << 20
KEPT_S = 3_600.0
_PAGE = 20
_LARGEST_PAGE = 100


class Now(Protocol):
    def now(self) -> float: ...


@dataclass(frozen=True)
class Stored:
    """``items``: everything said before the answer, earlier answers included, each with an id."""

    id: str
    response: dict[str, object]
    items: tuple[Json, ...]
    output: tuple[Json, ...]

    @property
    def conversation(self) -> tuple[Json, ...]:
        return self.items + self.output


@dataclass(frozen=True)
class Item:
    """``size``: its characters as JSON."""

    value: Json
    size: int


@dataclass
class _Kept:
    stored: Stored
    size: int
    used: float


class Store:
    """The least recently used is forgotten first. Requests are read on threads, so every method takes its turn."""

    def __init__(self, clock: Now, most: int = MOST_RESPONSES, most_bytes: int = MOST_BYTES) -> None:
        self._clock = clock
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._items: dict[str, dict[str, Item]] = {}
        """By its id, then by the responses that hold it."""
        self._turn = RLock()

    def put(self, stored: Stored) -> None:
        with self._turn:
            said = [self._sized(item) for item in stored.items]
            size = len(json.dumps(stored.response)) + sum(item.size for item in said)
            self._forget(stored.id)
            self._kept[stored.id] = _Kept(stored, size, self._clock.now())
            for item in [*said, *map(self._sized, stored.output)]:
                if isinstance(name := item.value.get("id"), str):
                    self._items.setdefault(name, {})[stored.id] = item
            while len(self._kept) > self._most or self._bytes() > self._most_bytes:
                self._forget(next(iter(self._kept)))

    def get(self, identity: str) -> Stored:
        """Raises ApiError when it is not here, or not any more."""
        with self._turn:
            self._expire()
            kept = self._kept.get(identity)
            if kept is None:
                raise ApiError(Problem.UNKNOWN, f"There is no response '{identity[:64]}' here.", "It may have expired.")
            kept.used = self._clock.now()
            self._kept.move_to_end(identity)
            return kept.stored

    def previous(self, identity: str) -> Stored:
        """The response a request goes on from. Raises ApiError as OpenAI's API names it."""
        try:
            return self.get(identity)
        except ApiError as error:
            remedy = "Send the whole conversation as 'input'."
            raise bad(error.what, remedy, "previous_response_id", "previous_response_not_found") from error

    def item(self, identity: str) -> Item | None:
        """An item any kept response has said or heard."""
        with self._turn:
            self._expire()
            return next(iter(self._items.get(identity, {}).values()), None)

    def delete(self, identity: str) -> None:
        with self._turn:
            self.get(identity)
            self._forget(identity)

    def input_page(self, identity: str, query: Mapping[str, str]) -> dict[str, object]:
        """Items a response answered: ``order`` asc or desc, ``limit`` 1 to 100, ``after`` an item's id."""
        items = list(self.get(identity).items)
        if query.get("order", "desc") not in ("asc", "desc"):
            raise bad("'order' must be asc or desc.", param="order")
        if query.get("order", "desc") == "desc":
            items.reverse()
        if after := query.get("after"):
            ids = [item.get("id") for item in items]
            if after not in ids:
                raise bad("'after' names no item of this response.", param="after")
            items = items[ids.index(after) + 1 :]
        limit = _limit(query.get("limit", str(_PAGE)))
        return _page(items[:limit], more=len(items) > limit)

    def _bytes(self) -> int:
        return sum(kept.size for kept in self._kept.values())

    def _sized(self, value: Json) -> Item:
        """Goes on from an earlier response without measuring it again."""
        name = value.get("id")
        known = self._items.get(name, {}) if isinstance(name, str) else {}
        found = next((item for item in known.values() if item.value is value), None)
        return found or Item(value, len(json.dumps(value)))

    def _expire(self) -> None:
        """The first in the order was used longest ago."""
        late = self._clock.now() - KEPT_S
        while self._kept and next(iter(self._kept.values())).used < late:
            self._forget(next(iter(self._kept)))

    def _forget(self, identity: str) -> None:
        kept = self._kept.pop(identity, None)
        for item in kept.stored.conversation if kept else ():
            if isinstance(name := item.get("id"), str) and (holders := self._items.get(name)) is not None:
                holders.pop(identity, None)
                if not holders:
                    del self._items[name]


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= _LARGEST_PAGE):
        raise bad(f"'limit' must be from 1 to {_LARGEST_PAGE}.", param="limit")
    return int(text)


def _page(items: list[Json], *, more: bool) -> dict[str, object]:
    first, last = (items[0].get("id"), items[-1].get("id")) if items else (None, None)
    return {"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": more}
