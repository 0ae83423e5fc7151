"""Who may begin, oldest first, with nobody taking more than a share of the queue."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from app.core.errors import RoomError
from app.room.turns import MOST_PROGRAMS, MOST_WAITING, Turns


@dataclass(eq=False)
class Wish:
    asker: str
    person: bool = False
    begun: bool = False
    places: list[int] = field(default_factory=list[int])

    def begin(self) -> None:
        self.begun = True

    def waits(self, place: int) -> None:
        self.places.append(place)


def queue(*, ready: bool = True, most: int = 1) -> Turns:
    return Turns(lambda: ready, lambda: most)


def begun(*wishes: Wish) -> list[bool]:
    return [wish.begun for wish in wishes]


def test_the_first_begins_at_once_and_the_others_in_turn() -> None:
    turns = queue()
    wishes = [Wish("a"), Wish("b"), Wish("c")]
    for wish in wishes:
        turns.ask(wish)
    assert [wish.begun for wish in wishes] == [True, False, False]
    turns.over(wishes[0])
    assert [wish.begun for wish in wishes] == [True, True, False]
    assert wishes[2].places == [2, 1]
    turns.over(wishes[1])
    turns.over(wishes[2])
    assert wishes[2].begun
    assert turns.running == ()


def test_programs_leave_people_their_places() -> None:
    turns = queue(ready=False)
    for i in range(MOST_PROGRAMS):
        turns.ask(Wish(f"program {i}"))
    with pytest.raises(RoomError, match="Too many"):
        turns.ask(Wish("one more"))
    for i in range(MOST_WAITING - MOST_PROGRAMS):
        turns.ask(Wish(f"person {i}", person=True))
    with pytest.raises(RoomError, match="Too many"):
        turns.ask(Wish("another", person=True))


def test_who_waits_hears_that_somebody_before_left() -> None:
    turns = queue()
    wishes = [Wish("a"), Wish("b"), Wish("c")]
    for wish in wishes:
        turns.ask(wish)
    turns.drop(lambda turn: turn.asker == "b")
    assert wishes[2].places == [2, 1]


def test_what_goes_first_begins_at_once_or_before_all_that_wait() -> None:
    turns = queue(most=2)
    programs, again = [Wish("a"), Wish("b"), Wish("c")], Wish("d", person=True)
    for wish in programs:
        turns.ask(wish)
    turns.first(again)
    assert (begun(again), again.places, programs[2].places) == ([False], [1], [1, 2])
    turns.over(programs[0])
    assert begun(again, programs[2]) == [True, False]
    other = queue(most=2)
    other.first(again)
    assert other.running == (again,)


def test_a_full_queue_and_a_full_share_are_refused() -> None:
    turns = queue(ready=False)
    for i in range(5):
        turns.ask(Wish(f"d{i}", person=True))
        turns.ask(Wish(f"d{i}", person=i > 0))
    with pytest.raises(RoomError, match="Too many"):
        turns.ask(Wish("d9", person=True))
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


def test_as_many_begin_as_there_is_room_for() -> None:
    turns = queue(most=3)
    wishes = [Wish(name) for name in "abcde"]
    for wish in wishes:
        turns.ask(wish)
    assert begun(*wishes) == [True, True, True, False, False]
    turns.over(wishes[1])
    assert begun(*wishes) == [True, True, True, True, False]
    assert wishes[4].places == [2, 1]


def test_people_have_one_answer_at_a_time_and_hold_back_no_programs() -> None:
    turns = queue(most=3)
    first, second, program, third = Wish("a", person=True), Wish("b", person=True), Wish("c"), Wish("d", person=True)
    for wish in (first, second, program, third):
        turns.ask(wish)
    assert begun(first, second, program, third) == [True, False, True, False]
    assert (second.places, program.places, third.places) == ([1], [], [2])
    turns.over(first)
    assert begun(second, third) == [True, False]
    assert third.places == [2, 1]


def test_the_oldest_of_all_takes_a_place_that_becomes_free() -> None:
    turns = queue(most=2)
    wishes = [Wish("a"), Wish("b"), Wish("c", person=True), Wish("d")]
    for wish in wishes:
        turns.ask(wish)
    turns.over(wishes[0])
    assert begun(*wishes[2:]) == [True, False]


def test_what_is_written_again_goes_before_all_that_wait_and_counts() -> None:
    turns = queue(most=2)
    wishes = [Wish("a"), Wish("b"), Wish("c")]
    for wish in wishes:
        turns.ask(wish)
    again = Wish("d", person=True)
    turns.begin(again)
    assert turns.person_runs
    turns.over(wishes[0])
    assert not wishes[2].begun
    turns.over(again)
    assert wishes[2].begun


def test_a_room_that_has_less_room_now_lets_the_others_wait() -> None:
    most = 2
    turns = Turns(lambda: True, lambda: most)
    wishes = [Wish("a"), Wish("b"), Wish("c")]
    for wish in wishes:
        turns.ask(wish)
    most = 1
    turns.over(wishes[0])
    assert not wishes[2].begun
    turns.over(wishes[1])
    assert wishes[2].begun
