"""Saved states of a whole chain: when they are complete, what goes on from them, and who forgets what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.engine.checkpoints import CheckpointStore
from app.engine.types import KvFormat, Part
from app.room import messages as m
from app.room.checkpoints import Keep, Mark
from app.room.copies import DiskCopies, NoCopies
from app.room.frame import DROP_ALL
from app.room.held import Held
from app.room.lanes import Lane
from app.room.laps import LapFailed
from app.room.ports import LoadRequest
from app.room.saves import Saves
from tests.room.line import PLEDGE, Answer, Line
from tests.room.toy import HYBRID, RECORD, TABLE, ToyCompute

CUT = 3
FIRST, SECOND, THIRD = list(b"Who was it?"), list(b"And then?"), list(b"Or what else?")
REQUEST = LoadRequest(HYBRID.key, Part(0, CUT, embed=True, head=True), 2048, KvFormat.F16, PLEDGE)


class Room:
    """A line of two devices with checkpoints."""

    def __init__(self, hybrid: bool = True, copies: Sequence[Any] = ()) -> None:
        self.host, self.worker = ToyCompute(), ToyCompute()
        self.record = HYBRID if hybrid else RECORD
        self.line = Line([self.host, self.worker], self.record, (CUT,), TABLE)
        self.copies = copies
        self.saves = Saves(self.host, copies[0] if copies else NoCopies())
        self.lane = Lane()

    async def start(self, answers: int = 2) -> Room:
        request = LoadRequest(self.record.key, REQUEST.part, 2048, KvFormat.F16, PLEDGE)
        await self.line.start(request, self.copies[1:])
        await self.online(answers)
        return self

    async def online(self, answers: int = 2) -> None:
        await self.saves.reload(answers)
        for message in self.line.told:
            if isinstance(message, m.Ready):
                self.hop.slots = set(message.slots)
        self.saves.online(self.line.chain)

    @property
    def hop(self) -> Any:
        return self.line.hops[0]

    async def ask(self, ids: Sequence[int], most: int = 20, marks: Sequence[Mark] = ()) -> Answer:
        """As a conversation does it: go on from the best beginning, keep what came of it."""
        chain = self.line.chain
        held, start = await self.saves.resume(chain, self.lane, ids)

        async def keep(held: Held, mark: Mark) -> Held:
            return await self.saves.keep(chain, self.lane, held, mark.keep)

        wanted = self.saves.marks(chain, marks, ids, start)
        got = await self.line.answer(ids, most, held=held, start=start, marks=wanted, keep=keep)
        self.lane.held = await self.saves.keep(chain, self.lane, got.held, Keep.ANSWER)
        await asyncio.sleep(0)
        return got

    async def close(self) -> None:
        await self.line.close()
        await self.saves.close()


@pytest.fixture
async def rooms() -> AsyncIterator[list[Room]]:
    made: list[Room] = []
    yield made
    for one in made:
        await one.close()


async def room(rooms: list[Room], **options: Any) -> Room:
    rooms.append(Room(**options))
    return await rooms[-1].start()


async def afresh(ids: Sequence[int], got: Answer) -> list[int]:
    """The same prompt from nothing, every position in the class it has in ``got``."""
    line = Line([ToyCompute(), ToyCompute()], HYBRID, (CUT,), TABLE)
    await line.start(REQUEST)
    answer = await line.answer(ids, len(got.ids), record=got.held.fed)
    await line.close()
    assert answer.held.fed == got.held.fed
    return answer.ids


async def test_a_save_rides_on_the_next_frame_and_counts_when_that_came_back(rooms: list[Room]) -> None:
    one = await room(rooms)
    first = await one.ask(FIRST)
    assert list(one.host.kept) == ["1"]
    assert one.worker.kept == {}
    assert one.hop.slots == set()
    await one.ask([*FIRST, *first.ids, *SECOND])
    assert list(one.worker.kept) == ["1"]
    assert one.hop.slots == {1}
    assert one.worker.kept["1"].end == one.host.kept["1"].end == len(FIRST) + 19
    saving = [frame.control.save for frame in one.line.wires[0].frames if frame.control.save]
    assert saving == [1]


async def test_an_edited_question_goes_on_from_the_answer_before_it(rooms: list[Room]) -> None:
    one = await room(rooms)
    first = await one.ask(FIRST)
    start = [*FIRST, *first.ids]
    await one.ask([*start, *SECOND])
    read = one.worker.prompt_columns + one.worker.step_columns
    got = await one.ask([*start, *THIRD])
    assert one.worker.restored == one.host.restored == [len(start) - 1]
    assert one.worker.prompt_columns + one.worker.step_columns - read == 1 + len(THIRD) + 19
    assert got.ids == await afresh([*start, *THIRD], got)
    loads = [frame for frame in one.line.wires[0].frames if frame.control.load]
    assert [(frame.position, frame.control.load, frame.control.save) for frame in loads] == [(len(start) - 1, 1, 2)]


async def test_going_back_and_forth_between_branches_is_exact(rooms: list[Room]) -> None:
    one = Room()
    rooms.append(one)
    await one.start(answers=3)
    first = await one.ask(FIRST)
    start = [*FIRST, *first.ids]
    second = await one.ask([*start, *SECOND])
    third = await one.ask([*start, *THIRD])
    again = await one.ask([*start, *SECOND, *second.ids, *THIRD])
    assert one.host.restored[-1] == len(start) + len(SECOND) + 19
    assert again.ids == await afresh([*start, *SECOND, *second.ids, *THIRD], again)
    back = await one.ask([*start, *THIRD, *third.ids, *SECOND])
    assert back.ids == await afresh([*start, *THIRD, *third.ids, *SECOND], back)


async def test_only_the_last_answers_are_kept_everywhere(rooms: list[Room]) -> None:
    one = await room(rooms)
    ids = FIRST
    for _ in range(4):
        got = await one.ask(ids, 10)
        ids = [*ids, *got.ids, *SECOND]
    assert list(one.host.kept) == ["3", "4"]
    assert list(one.worker.kept) == ["2", "3"]
    await one.ask(ids, 10)
    assert list(one.worker.kept) == ["3", "4"]


async def test_a_long_fixed_start_is_kept_beside_the_answers(rooms: list[Room]) -> None:
    one = await room(rooms)
    pin = list(bytes(range(97, 123)) * 8)
    marks = [Mark(len(pin), Keep.PIN)]
    for text in (FIRST, SECOND, THIRD):
        got = await one.ask([*pin, *text], marks=marks)
        assert got.ids == await afresh([*pin, *text], got)
    assert one.worker.restored == [len(pin), len(pin)]
    assert one.worker.kept["1"].end == len(pin)
    assert [frame.control.save for frame in one.line.wires[0].frames if frame.control.save].count(1) == 1


async def test_without_memory_the_oldest_goes_and_then_there_is_none(rooms: list[Room]) -> None:
    one = await room(rooms)
    one.host.room = 1
    first = await one.ask(FIRST)
    second = await one.ask([*FIRST, *first.ids, *SECOND])
    assert list(one.host.kept) == ["2"]
    one.host.room = 0
    one.host.kept.clear()
    third = await one.ask([*FIRST, *first.ids, *SECOND, *second.ids, *THIRD])
    assert one.host.kept == {}
    edited = [*FIRST, *first.ids, *THIRD]
    got = await one.ask(edited)
    assert third.ids
    assert got.generation.start == 0
    assert got.ids == await afresh(edited, got)


async def test_a_worker_without_room_says_so_and_is_never_asked_to_load(rooms: list[Room]) -> None:
    one = await room(rooms)
    one.worker.room = 0
    first = await one.ask(FIRST)
    start = [*FIRST, *first.ids]
    await one.ask([*start, *SECOND])
    lost = [message for message in one.line.told if isinstance(message, m.CheckpointsLoaded)]
    assert [message.lost for message in lost] == [(1,)]
    one.hop.lost |= {1}
    one.hop.slots -= {1}
    got = await one.ask([*start, *THIRD])
    assert (one.worker.restored, got.generation.start) == ([], 0)
    assert got.ids == await afresh([*start, *THIRD], got)


async def test_a_device_that_lost_its_states_makes_the_host_forget_and_drops_its_own_extras(rooms: list[Room]) -> None:
    one = await room(rooms)
    ids = FIRST
    for _ in range(3):
        got = await one.ask(ids, 10)
        ids = [*ids, *got.ids, *SECOND]
    assert one.hop.slots == {1, 2}
    one.hop.slots = {2, 77, 78, 79}
    one.saves.online(one.line.chain)
    one.held = Held()
    await one.ask(ids, 10)
    assert list(one.host.kept) == ["2", "80"]
    drops = [frame.control.drop for frame in one.line.wires[0].frames if frame.control.drop]
    assert drops[-2:] == [(77, 78), (79,)]


async def test_nothing_in_common_drops_all(rooms: list[Room]) -> None:
    one = await room(rooms)
    await one.ask(FIRST)
    one.hop.slots = {41, 42}
    one.saves.online(one.line.chain)
    one.held = Held()
    await one.ask(FIRST)
    assert one.line.wires[0].frames[-1].position
    assert (DROP_ALL,) in [frame.control.drop for frame in one.line.wires[0].frames]
    assert one.worker.kept == {}
    assert list(one.host.kept) == ["43"]


async def test_an_answer_that_failed_clears_everything(rooms: list[Room]) -> None:
    one = await room(rooms)
    first = await one.ask(FIRST)
    await one.ask([*FIRST, *first.ids, *SECOND])
    await one.saves.clear(one.line.chain)
    one.held = Held()
    assert one.host.kept == {}
    got = await one.ask([*FIRST, *first.ids, *SECOND])
    assert got.generation.start == 0
    assert one.hop.slots == set()
    assert one.worker.kept == {}


async def test_a_worker_refuses_a_state_it_has_not(rooms: list[Room]) -> None:
    one = await room(rooms)
    first = await one.ask(FIRST)
    start = [*FIRST, *first.ids]
    await one.ask([*start, *SECOND])
    one.worker.kept.clear()
    with pytest.raises(LapFailed, match="There is no 1"):
        await one.ask([*start, *THIRD])


async def test_dense_models_go_on_from_anywhere_and_keep_nothing(rooms: list[Room]) -> None:
    one = await room(rooms, hybrid=False)
    first = await one.ask(FIRST)
    start = [*FIRST, *first.ids]
    await one.ask([*start, *SECOND])
    got = await one.ask([*start, *THIRD])
    assert got.generation.start == len(start)
    assert one.host.kept == one.worker.kept == {}


async def test_none_are_kept_when_the_room_wants_none_or_a_device_cannot(rooms: list[Room]) -> None:
    one = Room()
    rooms.append(one)
    await one.start(answers=0)
    await one.ask(FIRST)
    assert one.host.kept == {}
    other = await room(rooms)
    other.hop.keeps = False
    await other.ask(FIRST)
    assert other.host.kept == {}


async def test_devices_that_load_again_read_their_copies_back(rooms: list[Room], tmp_path: Path) -> None:
    disks = [DiskCopies(CheckpointStore(tmp_path / name)) for name in ("host", "worker")]
    one = await room(rooms, copies=[disk.of("ABCDEF") for disk in disks])
    first = await one.ask(FIRST)
    start = [*FIRST, *first.ids]
    await one.ask([*start, *SECOND])
    await asyncio.sleep(0.2)
    two = await room(rooms, copies=[disk.of("ABCDEF") for disk in disks])
    assert list(two.worker.kept) == ["1"]
    assert [message.slots for message in two.line.told if isinstance(message, m.Ready)] == [(1,)]
    got = await two.ask([*start, *THIRD])
    assert two.worker.restored == two.host.restored == [len(start) - 1]
    assert got.ids == await afresh([*start, *THIRD], got)
    three = await room(rooms, copies=[disk.of("OTHERS") for disk in disks])
    assert three.worker.kept == three.host.kept == {}
    for disk in disks:
        await disk.close()


async def test_a_copy_that_is_damaged_on_one_device_is_forgotten_on_all(rooms: list[Room], tmp_path: Path) -> None:
    disks = [DiskCopies(CheckpointStore(tmp_path / name)) for name in ("host", "worker")]
    one = await room(rooms, copies=[disk.of("ABCDEF") for disk in disks])
    first = await one.ask(FIRST)
    start = [*FIRST, *first.ids]
    await one.ask([*start, *SECOND])
    await asyncio.sleep(0.2)
    for path in (tmp_path / "worker").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    two = await room(rooms, copies=[disk.of("ABCDEF") for disk in disks])
    got = await two.ask([*start, *THIRD])
    assert got.generation.start == 0
    assert two.worker.restored == []
    assert got.ids == await afresh([*start, *THIRD], got)
    for disk in disks:
        await disk.close()
