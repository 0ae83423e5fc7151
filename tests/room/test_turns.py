"""One answer at a time, oldest first, nobody with more than a share of the queue."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from app.core.errors import RoomError
from app.room.turns import Turns


@dataclass(eq=False)
class Wish:
    asker: str
    begun: bool = False
    places: list[int] = field(default_factory=list[int])

    def begin(self) -> None:
        self.begun = True

    def waits(self, place: int) -> None:
        self.places.append(place)


def queue(*, ready: bool = True) -> Turns:
    return Turns(lambda: ready)


def test_the_first_begins_at_once_and_the_others_in_turn() -> None:
    turns = queue()
    wishes = [Wish("a"), Wish("b"), Wish("c")]
    for wish in wishes:
        turns.ask(wish)
    assert [wish.begun for wish in wishes] == [True, False, False]
    turns.over()
    assert [wish.begun for wish in wishes] == [True, True, False]
    assert wishes[2].places == [2, 1]
    turns.over()
    turns.over()
    assert wishes[2].begun
    assert turns.running is None


def test_a_full_queue_and_a_full_share_are_refused() -> None:
    turns = queue(ready=False)
    for i in range(5):
        turns.ask(Wish(f"d{i}"))
        turns.ask(Wish(f"d{i}"))
    with pytest.raises(RoomError, match="Too many"):
        turns.ask(Wish("d9"))
    turns.drop(lambda turn: turn.asker == "d0")
    with pytest.raises(RoomError, match="Two of your"):
        turns.ask(Wish("d1"))
    assert len(turns.waiting) == 8


def test_nothing_begins_while_no_model_is_there() -> None:
    ready = False
    turns = Turns(lambda: ready)
    first = Wish("a")
    turns.ask(first)
    turns.next()
    assert not first.begun
    ready = True
    turns.next()
    assert first.begun


def test_whoever_left_is_not_asked() -> None:
    changes: list[int] = []
    turns = queue(ready=False)
    turns.on_change = lambda: changes.append(len(turns.waiting))
    gone, stays = Wish("a"), Wish("b")
    turns.ask(gone)
    turns.ask(stays)
    assert turns.drop(lambda turn: turn.asker == "a") == (gone,)
    assert turns.drop(lambda turn: turn.asker == "a") == ()
    assert turns.waiting == (stays,)
    assert changes == [1, 2, 1]
