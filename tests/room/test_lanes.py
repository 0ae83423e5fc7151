"""Which place in the caches a prompt takes, what is saved before it is overwritten, and what a loss does to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from app.core.errors import GpuError, OutOfMemory
from app.engine.types import ColumnClass, KvFormat, Part, Sampling, Step, Stepped
from app.room.checkpoints import Checkpoint, Checkpoints, Keep
from app.room.dealing import Stage
from app.room.generate import Ending
from app.room.held import Held
from app.room.lanes import Lane, Lanes
from app.room.laps import LapFailed
from app.room.ports import LoadRequest
from tests.room.line import PLEDGE
from tests.room.toy import HYBRID, LAYERS, RECORD, ToyCompute
from tests.room.writing import Alone, Work

RECORDS = {"dense": RECORD, "hybrid": HYBRID}
LONG = 80


def held(ids: Sequence[int]) -> Held:
    return Held().grown(ids, ColumnClass.PROMPT, None)


def text(begin: str, letters: int = LONG) -> list[int]:
    return list((begin * letters)[:letters].encode())


# -- which lane ----------------------------------------------------------------------------------------------------


def used(*rows: Sequence[int], busy: int = -1) -> Lanes:
    """Lanes that were used in this order and hold these tokens."""
    lanes = Lanes(len(rows))
    for row in rows:
        lanes.take([0], hybrid=False, saved=0).held = held(row)
    for lane in lanes:
        lane.busy = lane.sequence == busy
    return lanes


def test_a_prompt_takes_the_lane_that_holds_most_of_it() -> None:
    lanes = used(text("a"), text("b"), text("bc"))
    assert lanes.take([*text("b"), 1], hybrid=False, saved=0).sequence == 1
    assert lanes.take([*text("bc"), 1], hybrid=False, saved=0).sequence == 2


def test_of_equal_lanes_the_least_recently_used_is_taken() -> None:
    lanes = used(text("a"), text("b"), text("c"))
    lanes.take([*text("a"), 1], hybrid=False, saved=0).busy = False
    assert [lanes.take(text("x"), hybrid=False, saved=0).sequence for _ in range(3)] == [1, 2, 0]


def test_a_few_words_that_all_begin_with_are_worth_no_lane() -> None:
    lanes = used([], text("ab"))
    assert lanes.take([*text("ab", 20), *text("z")], hybrid=False, saved=0).sequence == 0


def test_a_short_conversation_goes_on_in_its_lane() -> None:
    lanes = used([], text("ab", 12), [])
    assert lanes.take([*text("ab", 12), 1, 2], hybrid=False, saved=0).sequence == 1


def test_where_a_saved_state_is_longer_no_lane_is_spoiled_for_it() -> None:
    lanes = used(text("x"), text("a"))
    assert lanes.take([*text("a"), *text("b")], hybrid=False, saved=LONG + 9).sequence == 0


def test_a_lane_that_writes_is_nobody_elses() -> None:
    lanes = used(text("a"), text("b"), busy=0)
    assert lanes.take([*text("a"), 1], hybrid=False, saved=0).sequence == 1


def test_lost_lanes_say_so() -> None:
    lanes = used(text("a"), text("b"))
    taken = lanes.take([*text("a"), 1], hybrid=False, saved=0)
    taken.check()
    lanes.lose(LapFailed("The GPU is gone."))
    with pytest.raises(LapFailed, match="gone"):
        taken.check()
    with pytest.raises(LapFailed, match="gone"):
        lanes.take([1], hybrid=False, saved=0)
    assert taken.held == lanes.latest == Held()


@pytest.mark.parametrize(
    ("of", "shared", "common", "another"),
    [(None, None, 0, False), (None, 0, LONG, True), (0, None, LONG, True), (9, 9, 9, True), (9, 9, LONG, False)],
)
def test_people_have_one_conversation_and_programs_those_they_tell_apart(
    of: int | None, shared: int | None, common: int, another: bool
) -> None:
    lane = Lane(held=held(text("a")), shared=of)
    assert lane.another([*text("a", common), *text("z")], shared) == another


# -- what is kept -------------------------------------------------------------------------------------------------


def test_with_more_lanes_more_is_kept() -> None:
    checkpoints = Checkpoints(answers=2, lanes=3)
    for n in range(5):
        checkpoints.add(Checkpoint(checkpoints.next_slot(), held([n] * 9), Keep.ANSWER))
        checkpoints.add(Checkpoint(checkpoints.next_slot(), held([n] * 5), Keep.TURN))
    kinds = [kept.keep for kept in checkpoints.kept]
    assert (kinds.count(Keep.ANSWER), kinds.count(Keep.TURN)) == (4, 3)


def test_what_is_wanted_next_is_not_driven_out() -> None:
    checkpoints = Checkpoints(answers=1)
    checkpoints.add(Checkpoint(1, held([1] * 9), Keep.ANSWER))
    assert checkpoints.add(Checkpoint(2, held([2] * 9), Keep.ANSWER), but=1) == []
    oldest = checkpoints.oldest(but=1)
    assert oldest is not None
    assert oldest.slot == 2


def test_a_dense_state_is_gone_back_to_anywhere_and_a_recurrent_one_at_its_end() -> None:
    checkpoints = Checkpoints(answers=2)
    checkpoints.add(Checkpoint(1, held(text("a", 200)), Keep.ANSWER))
    ids = [*text("a", 100), *text("b")]
    assert checkpoints.reach(ids, hybrid=False) == 100
    assert checkpoints.reach(ids, hybrid=True) == 0
    assert checkpoints.best(ids, hybrid=True) is None
    found = checkpoints.best(ids, hybrid=False)
    assert found is not None
    assert found.start(ids, hybrid=False) == 100
    assert checkpoints.reach([*text("a", 200), 1], hybrid=True) == 200


# -- at work ------------------------------------------------------------------------------------------------------


async def device(kind: str, lanes: int = 2, answers: int = 4) -> Alone:
    compute, record = ToyCompute(lanes=lanes), RECORDS[kind]
    part = Part(0, LAYERS, embed=True, head=True)
    await compute.load(LoadRequest(record.key, part, 2048, KvFormat.F16, PLEDGE), lambda _share: None)
    return await Alone(compute, record, answers=answers, context=2048).online()


def toy(one: Alone) -> ToyCompute:
    compute = one.engine
    assert isinstance(compute, ToyCompute)
    return compute


@pytest.mark.parametrize("kind", RECORDS)
async def test_another_conversation_parks_what_it_takes_the_place_of(kind: str) -> None:
    one = await device(kind, lanes=1)
    first = await one.ask(text("a"), 20)
    await one.ask(text("b"), 20)
    read = toy(one).prompt_columns
    back = await one.ask([*first.prompt, *first.now.ids, 5, 6], 20)
    assert back.now.reused == LONG + 19
    assert toy(one).prompt_columns - read <= 3
    alone = await device(kind, lanes=1)
    again = await alone.ask(text("a"), 20)
    assert (await alone.ask([*again.prompt, *again.now.ids, 5, 6], 20)).now.ids == back.now.ids


async def test_a_dense_conversation_that_goes_on_or_is_written_again_is_not_parked() -> None:
    one = await device("dense", lanes=1)
    first = await one.ask(text("a", 150), 20)
    await one.ask([*first.prompt, *first.now.ids, 5], 20)
    await one.ask([*first.prompt, 7], 100)
    assert toy(one).kept == {}


async def test_a_dense_copy_that_went_back_takes_no_memory() -> None:
    one = await device("dense", lanes=1)
    first = await one.ask(text("a"), 20)
    await one.ask(text("b"), 20)
    assert len(toy(one).kept) == 1
    await one.ask([*first.prompt, *first.now.ids, 5], 20)
    ends = [state.end for state in toy(one).kept.values()]
    await one.ask([1, 2, 3], 1)
    assert ends == [LONG + 19]
    assert sorted(state.end for state in toy(one).kept.values()) == [LONG + 19, LONG + 40]


async def test_without_memory_a_parked_conversation_is_simply_gone() -> None:
    one = await device("dense", lanes=1)
    toy(one).room = 0
    first = await one.ask(text("a"), 20)
    await one.ask(text("b"), 20)
    back = await one.ask([*first.prompt, *first.now.ids, 5, 6], 20)
    assert (back.now.reused, len(back.now.ids)) == (0, 20)


async def test_a_short_conversation_is_not_worth_a_copy() -> None:
    one = await device("dense", lanes=1)
    await one.ask(text("a", 20), 20)
    await one.ask(text("b"), 20)
    assert toy(one).kept == {}


async def test_answers_in_step_share_passes_and_drafts_leave_room_for_each_other() -> None:
    one = await device("dense", lanes=4)
    got = await asyncio.gather(*(one.ask(text(letter), 12) for letter in "abcd"))
    alone = [await (await device("dense", lanes=1)).ask(text(letter), 12) for letter in "abcd"]
    assert [work.now.ids for work in got] == [work.now.ids for work in alone]
    assert one.passes.count(dict.fromkeys(range(4), 1)) >= 8


async def test_more_answers_than_lanes_wait_for_one_and_a_stop_ends_the_wait() -> None:
    one = await device("dense", lanes=1)
    first = asyncio.ensure_future(one.ask(text("a"), 40))
    await asyncio.sleep(0)
    waiting = [Work(tuple(text(letter)), 5, Sampling()) for letter in "bc"]
    written = [asyncio.ensure_future(one.write(work)) for work in waiting]
    for _ in range(20):
        await asyncio.sleep(0)
    one.writer.stop(waiting[0])
    assert await written[0] is Ending.STOPPED
    assert waiting[0].now.ids == []
    assert not first.done()
    assert await written[1] is Ending.CAPPED
    assert first.done()


async def test_what_lost_lanes_gave_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass comes home with another deal's words after the caches are gone; all go on from their own last one."""
    one = await device("dense", lanes=3)
    plain, again = one.engine.step, list[asyncio.Task[Alone]]()

    async def lost_once(steps: Sequence[Step]) -> list[Stepped]:
        found = await plain(steps)
        if len(one.passes) == 7:
            one.dealing.stage = Stage.DEGRADED
            one.writer.lost(LapFailed("The layers are dealt again."))
            again.append(asyncio.ensure_future(one.online()))
            return found[::-1]
        return found

    monkeypatch.setattr(one.engine, "step", lost_once)
    got = await asyncio.gather(*(one.ask(text(letter), 20) for letter in "abc"))
    alone = [await (await device("dense", lanes=1)).ask(text(letter), 20) for letter in "abc"]
    assert [work.now.ids for work in got] == [work.now.ids for work in alone]
    assert len(again) == 1
    assert len({tuple(work.now.ids) for work in alone}) == 3


async def test_nothing_begins_on_new_caches_while_an_attempt_on_lost_ones_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = await device("dense", lanes=2)
    gate, held_back = asyncio.Event(), asyncio.Event()
    plain = one.engine.step

    async def slow(steps: Sequence[Step]) -> list[Stepped]:
        held_back.set()
        await gate.wait()
        return await plain(steps)

    monkeypatch.setattr(one.engine, "step", slow)
    first = asyncio.ensure_future(one.ask(text("a"), 5))
    await held_back.wait()
    one.writer.lost(LapFailed("The layers are dealt again."))
    one.writer.online()
    read = toy(one).prompt_columns
    second = asyncio.ensure_future(one.ask(text("b"), 5))
    for _ in range(30):
        await asyncio.sleep(0)
    assert toy(one).prompt_columns == read
    gate.set()
    assert [len(work.now.ids) for work in await asyncio.gather(first, second)] == [5, 5]


async def test_memory_that_the_oldest_cannot_make_costs_no_second_state(monkeypatch: pytest.MonkeyPatch) -> None:
    one = await device("dense", lanes=1)
    for letter in "abc":
        await one.ask(text(letter), 20)
    await one.ask(text("L", 900), 3)
    before = sorted(state.end for state in toy(one).kept.values())
    save = toy(one).save

    async def tight(name: str, end: int, sequence: int = 0) -> None:
        if end > 500:
            raise OutOfMemory("There is no room.")
        await save(name, end, sequence)

    monkeypatch.setattr(toy(one), "save", tight)
    await one.ask(text("d"), 20)
    assert before == [LONG + 19] * 3
    assert sorted(state.end for state in toy(one).kept.values()) == before[1:]


class Broken:
    """A form whose answer fails."""

    free = False

    def guesses(self, _proposed: object) -> tuple[int, ...]:
        return ()

    def shaping(self, _guesses: object) -> None:
        raise GpuError("Numbers that are none.")

    def said(self, _token: int) -> None: ...


@pytest.mark.parametrize("kind", RECORDS)
async def test_an_answer_that_fails_costs_only_the_states_it_came_from(kind: str) -> None:
    one = await device(kind, lanes=1)
    said = [await one.ask(text(letter), 20) for letter in "abc"]
    before = dict(toy(one).kept)
    await _fails(one, text("d"))
    assert before.items() <= toy(one).kept.items()
    await _fails(one, [*said[0].prompt, *said[0].now.ids, 5, 6])
    back = [await one.ask([*work.prompt, *work.now.ids, 5, 6], 20) for work in said]
    assert [work.now.reused for work in back] == [0, LONG + 19, LONG + 19]


async def _fails(one: Alone, ids: list[int]) -> None:
    work = Work(tuple(ids), 20, Sampling(), steering=Broken())
    with pytest.raises(GpuError):
        await one.write(work)
