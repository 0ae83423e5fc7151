"""A draft model and an idle draft block: what is said stays the same, and nothing is done in vain."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from app.core.errors import GpuError
from app.engine.types import STEP_COLUMNS, KvFormat, Part
from app.room.answer_line import AnswerFigures, answer_line
from app.room.chain import Chain
from app.room.checkpoints import Keep, Mark
from app.room.drafter import LookupWidths, Source
from app.room.guessers import READ_AT_ONCE
from app.room.meta import Meta
from app.room.ports import LoadRequest
from tests.room.line import META, PLEDGE, Line, depth
from tests.room.lines import CUTS, IDS, MOST, SAMPLERS, expected, host_of, line, oracle
from tests.room.toy import LAYERS, RECORD, TABLE, Reader, ToyCompute


def reader(answer: Sequence[int], right: float) -> Reader:
    """A draft model of which this share of guesses is right, as long as what it is given is what was said."""
    text, dice = [*IDS, *answer], random.Random(5)

    def guesses(ids: Sequence[int], count: int) -> list[int]:
        assert list(ids) == text[: len(ids)]
        true = [*text, *[97] * count][len(ids) : len(ids) + count]
        return [token if dice.random() < right else 96 for token in true]

    return guesses


async def with_small(cuts: Sequence[int], small: Reader | None, meta: Meta = META) -> Line:
    made = Line([ToyCompute(small=small), *(ToyCompute() for _ in cuts)], RECORD, cuts, TABLE, meta)
    part = Part(0, (*cuts, LAYERS)[0], embed=True, head=True)
    return await made.start(LoadRequest(RECORD.key, part, 2048, KvFormat.F16, PLEDGE, draft="small"))


@pytest.mark.parametrize("where", CUTS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("right", [1.0, 0.0, 0.7], ids=["good", "bad", "mixed"])
async def test_every_depth_says_the_same(
    lines: list[Line], monkeypatch: pytest.MonkeyPatch, where: str, sampler: str, right: float
) -> None:
    monkeypatch.setattr(Chain, "lookup_widths", LookupWidths())
    words = expected(CUTS[where], sampler)
    pick, sampling = SAMPLERS[sampler]
    for k in range(1, 8) if (sampler, right) == ("greedy", 0.7) else (2, 7):
        lines.append(await with_small(CUTS[where], reader(words, right)))
        lines[-1].chain.depth = depth(k)
        got = await lines[-1].answer(IDS, MOST, choose=pick, sampling=sampling)
        assert got.ids == words
        accepted, figures = sum(source is Source.BLOCK for source in got.sources), got.generation.drafter.acceptance
        assert figures.accepted == accepted
        assert accepted == {1.0: MOST - 1 - -(-(MOST - 1) // (k + 1)), 0.0: 0}.get(right, accepted)
        shown = answer_line(AnswerFigures(MOST, 9.0, 1, 0, figures, "", 0))
        assert f"{100 * accepted / figures.drafted:.0f}% drafts accepted" in shown


async def test_a_lookup_of_two_or_more_comes_first(lines: list[Line]) -> None:
    """The draft model is asked until the model begins to repeat itself, and no more."""

    def next_letter(_candidates: object, _sampling: object, position: int) -> int:
        return 97 + position % 26

    lines.append(await with_small((3,), lambda ids, count: [96] * count))
    lines[-1].chain.depth = depth(3)
    got = await lines[-1].answer(IDS, 80, choose=next_letter)
    assert got.ids == [97 + position % 26 for position in range(len(IDS), len(IDS) + 80)]
    assert 40 < got.generation.drafter.acceptance.looked_up == got.generation.drafter.acceptance.accepted
    assert max(length for length, _ in host_of(lines[-1]).asked) < len(IDS) + 30


async def test_a_long_prompt_is_read_in_pieces_and_once(lines: list[Line]) -> None:
    prompt = (IDS * 40)[: 2 * READ_AT_ONCE + 100]
    lines.append(await with_small((3,), lambda ids, count: [96] * count))
    lines[-1].chain.depth = depth(3)
    await lines[-1].answer(prompt, 6)
    asked, read = host_of(lines[-1]).asked, [READ_AT_ONCE, 2 * READ_AT_ONCE, len(prompt) + 1]
    assert asked[:3] == [(length, 0) for length in read]
    assert asked[3:5] == [(len(prompt) + 1, 3), (len(prompt) + 2, 3)]


@pytest.mark.parametrize("where", CUTS)
async def test_at_depth_none_a_draft_model_is_left_alone(lines: list[Line], where: str) -> None:
    lines.append(await with_small(CUTS[where], lambda ids, count: [96] * count))
    lines[-1].chain.depth = depth(0)
    got = await lines[-1].answer(IDS, 40)
    assert got.ids == expected(CUTS[where], most=40)
    assert host_of(lines[-1]).asked == []


async def test_devices_that_do_not_verify_get_no_drafts(lines: list[Line]) -> None:
    lines.append(await with_small((3,), lambda ids, count: [96] * count, Meta(webgpu=True, dspec=0)))
    got = await lines[-1].answer(IDS, 20)
    assert got.ids == expected((3,), most=20)
    assert host_of(lines[-1]).asked == []


async def test_a_draft_model_that_fails_costs_only_speed(lines: list[Line]) -> None:
    def broken(_ids: Sequence[int], _count: int) -> list[int]:
        raise GpuError("Numbers that are none.")

    lines.append(await with_small((3,), broken))
    for _ in range(2):
        got = await lines[-1].answer(IDS, 40)
        assert got.ids == expected((3,), most=40)
    assert [count for _, count in host_of(lines[-1]).asked] == [0, 3] * 2


async def test_one_past_its_context_is_no_measure_of_anything(lines: list[Line]) -> None:
    lines.append(await with_small((3,), lambda _ids, _count: []))
    got = await lines[-1].answer(IDS, 40)
    assert got.ids == expected((3,), most=40)
    assert lines[-1].chain.depth.depth(15) == 3
    assert [count for _, count in host_of(lines[-1]).asked if count] == [3]


@pytest.mark.parametrize("where", CUTS)
async def test_an_idle_draft_block_learns_the_same_in_fewer_calls(lines: list[Line], where: str) -> None:
    """Whatever the depth, it has seen every column with its true state when the answer ends."""
    words = expected(CUTS[where], most=75)
    for k in (0, 3):
        lines.append(await line(CUTS[where], oracle(words, 0.6)))
        lines[-1].chain.depth = depth(k)
        got = await lines[-1].answer(IDS, 75)
        assert got.ids == words
    idle, busy = host_of(lines[0]), host_of(lines[1])
    assert sorted(idle.shown) == sorted(busy.shown) == list(range(len(IDS) + 74))
    for position, (token, before) in idle.shown.items():
        assert busy.shown[position][0] == token
        assert np.array_equal(busy.shown[position][1], before)
    answer = idle.learned[-5:]
    assert answer == [STEP_COLUMNS] * 4 + [75 - 4 * STEP_COLUMNS]


async def test_a_draft_block_has_learned_everything_when_a_state_is_kept(lines: list[Line]) -> None:
    """An answer's words are read again as steps; no mark comes before the block has seen them."""
    words = expected((), most=60)
    lines.append(await line((), oracle(words, 0.0)))
    made, seen = lines[-1], list[int]()
    made.chain.depth = depth(0)
    first = await made.answer(IDS, 60)
    await host_of(made).reset()
    host_of(made).shown.clear()

    async def keep(held: object, mark: Mark) -> object:
        seen.append(len(host_of(made).shown))
        return held

    again = [*IDS, *first.ids, *b" And?"]
    place = len(IDS) + 41
    await made.answer(again, 4, record=first.held.fed, marks=[Mark(place, Keep.TURN)], keep=keep)
    assert seen == [place]
