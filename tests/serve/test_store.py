"""Responses are kept for a while, and no more than there is room for (spec: product A-052)."""

from __future__ import annotations

import json

import pytest

from app.core.clock import VirtualClock
from app.prompt.ask import Json
from app.serve.errors import ApiError
from app.serve.store import KEPT_S, Item, Store, Stored


def stored(name: str, items: int = 1, text: str = "") -> Stored:
    said = tuple({"id": f"{name}-in-{place}", "text": text} for place in range(items))
    return Stored(name, {"id": name}, said, ({"id": f"{name}-out"},))


def kept(store: Store, *names: str) -> list[str]:
    found: list[str] = []
    for name in names:
        try:
            found.append(store.get(name).id)
        except ApiError:
            continue
    return found


def test_the_least_used_goes_first() -> None:
    store = Store(VirtualClock(), most=2)
    store.put(stored("a"))
    store.put(stored("b"))
    store.get("a")
    store.put(stored("c"))
    assert kept(store, "a", "b", "c") == ["a", "c"]


def test_bytes_are_bounded_too() -> None:
    store = Store(VirtualClock(), most_bytes=2_500)
    for name in "abc":
        store.put(stored(name, text="x" * 1_000))
    assert kept(store, "a", "b", "c") == ["b", "c"]
    store.put(stored("huge", text="x" * 3_000))
    assert kept(store, "b", "c", "huge") == []


def test_an_hour_after_the_last_use_it_is_forgotten() -> None:
    clock = VirtualClock()
    store = Store(clock)
    store.put(stored("a"))
    clock.advance(KEPT_S)
    assert store.get("a").id == "a"
    clock.advance(KEPT_S)
    assert store.item("a-out") == Item({"id": "a-out"}, len('{"id": "a-out"}'))
    clock.advance(1)
    assert store.item("a-out") is None
    with pytest.raises(ApiError) as caught:
        store.previous("a")
    assert caught.value.code == "previous_response_not_found"


def test_an_item_stays_as_long_as_one_response_holds_it() -> None:
    store = Store(VirtualClock(), most=2)
    item: Json = {"id": "x", "text": "long" * 10}
    store.put(Stored("a", {}, (item,), ()))
    store.put(Stored("b", {}, (item, {"id": ["no", "name"]}), ()))
    store.delete("a")
    assert store.item("x") == Item(item, len(json.dumps(item)))
    store.put(stored("c"))
    store.put(stored("d"))
    assert store.item("x") is None


def test_deleting() -> None:
    store = Store(VirtualClock())
    store.put(stored("a"))
    store.delete("a")
    with pytest.raises(ApiError):
        store.delete("a")


def test_pages_of_items() -> None:
    store = Store(VirtualClock())
    store.put(stored("a", items=25))

    def page(**query: str) -> tuple[list[int], object]:
        told = store.input_page("a", query)
        data = told["data"]
        assert isinstance(data, list)
        assert (told["first_id"], told["last_id"]) == ((data[0]["id"], data[-1]["id"]) if data else (None, None))
        return [int(item["id"].split("-")[-1]) for item in data], told["has_more"]

    assert page() == (list(range(24, 4, -1)), True)
    assert page(order="asc", limit="100") == (list(range(25)), False)
    assert page(order="asc", after="a-in-22") == ([23, 24], False)
    assert page(after="a-in-0") == ([], False)
    for query in ({"order": "up"}, {"limit": "0"}, {"limit": "101"}, {"limit": "²"}, {"limit": "x"}, {"after": "b"}):
        with pytest.raises(ApiError):
            store.input_page("a", query)
