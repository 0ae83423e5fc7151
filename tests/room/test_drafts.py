"""Drafts change how many words a step gives, never which: any sampler, any depth, any quality of drafts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from app.core.errors import GpuError
from app.engine.types import ColumnClass
from app.room.chain import Chain
from app.room.checkpoints import live_start
from app.room.drafter import LookupWidths, Source
from app.room.frame import FrameKind
from app.room.generate import Ending
from app.room.held import Held
from app.room.meta import Meta
from tests.room.line import Answer, Line, depth
from tests.room.lines import (
    CUTS,
    ENDS,
    IDS,
    MOST,
    SAMPLERS,
    answer_until,
    check_end,
    expected,
    line,
    oracle,
)
from tests.room.toy import RECORD, TABLE, ToyCompute, one_device


def without_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chain, "lookup_widths", LookupWidths())


@pytest.mark.parametrize("where", CUTS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("right", [1.0, 0.0, 0.7], ids=["good", "bad", "mixed"])
async def test_every_depth_says_the_same(
    lines: list[Line], monkeypatch: pytest.MonkeyPatch, where: str, sampler: str, right: float
) -> None:
    without_lookup(monkeypatch)
    cuts = CUTS[where]
    words = expected(cuts, sampler)
    pick, sampling = SAMPLERS[sampler]
    for k in range(1, 16) if where != "three" else (1, 7, 15):
        lines.append(await line(cuts, oracle(words, right)))
        lines[-1].chain.depth = depth(k)
        got = await lines[-1].answer(IDS, MOST, choose=pick, sampling=sampling)
        assert got.ids == words
        assert got.ending is Ending.CAPPED
        assert got.held.fed.ids == (*IDS, *words[:-1])
        accepted = sum(source is Source.BLOCK for source in got.sources)
        steps = -(-(MOST - 1) // (k + 1))
        assert accepted == {1.0: MOST - 1 - steps, 0.0: 0}.get(right, accepted)
        assert 0 <= accepted < MOST


@pytest.mark.parametrize("where", ["split", "three"])
@pytest.mark.parametrize("hybrid", [True, False], ids=["hybrid", "dense"])
async def test_lookups_say_the_same(lines: list[Line], where: str, hybrid: bool) -> None:
    """A prompt that holds the answer already, with mistakes in it."""
    cuts = CUTS[where]
    prompt = [*IDS, *one_device(IDS, 120, cuts), *IDS]
    words = one_device(prompt, MOST, cuts)
    half = [*IDS, *words[:60], 96, *words[61:130], *IDS]
    for ids in (prompt, half):
        plain = one_device(ids, MOST, cuts)
        lines.append(await line(cuts, None, hybrid=hybrid))
        got = await lines[-1].answer(ids, MOST)
        assert got.ids == plain
        assert set(got.sources) <= {Source.SAMPLED, Source.LOOKUP}
    assert Source.LOOKUP in got.sources


async def test_lookup_runs_grow_after_one_that_was_right(lines: list[Line]) -> None:
    """A model that says again what it was told is answered in frames of up to sixteen columns."""
    lines.append(await line((3,), None))
    ids = (list(range(97, 123)) * 4)[:100]

    def next_letter(_candidates: object, _sampling: object, position: int) -> int:
        return 97 + position % 26

    got = await lines[-1].answer([*ids[:78], *ids[:26]], 80, choose=next_letter)
    widths = [frame.columns for frame in lines[-1].wires[0].frames if frame.spec]
    assert max(widths) == 16
    assert widths.index(8) < widths.index(16)
    assert got.generation.drafter.acceptance.looked_up > 40


async def test_a_dense_model_alone_takes_plain_steps(lines: list[Line]) -> None:
    lines.append(await line((), None, hybrid=False))
    ids = [*IDS, *IDS, *IDS]
    got = await lines[-1].answer(ids, 20)
    assert got.ids == one_device(ids, 20, ())
    assert set(got.sources) == {Source.SAMPLED}


@pytest.mark.parametrize("native", ["", "pooled-desktop"], ids=["published", "ours"])
@pytest.mark.parametrize("dspec", [0, 1])
def test_dense_devices_that_do_not_verify_get_no_drafts(native: str, dspec: int) -> None:
    made = Line([ToyCompute(), ToyCompute()], RECORD, (3,), TABLE, Meta(native=native, dspec=dspec))
    widths = made.chain.lookup_widths
    assert widths == (LookupWidths(3, 15 if native else 7) if dspec else LookupWidths())


@pytest.mark.parametrize("where", CUTS)
async def test_the_draft_block_is_shown_true_states_of_every_column(lines: list[Line], where: str) -> None:
    cuts = CUTS[where]
    words = expected(cuts)
    plain = await line(cuts, oracle(words, 0.0))
    lines += [plain, await line(cuts, oracle(words, 0.6))]
    truth = await plain.answer(IDS, 90)
    got = await lines[-1].answer(IDS, 90)
    host, known = lines[-1].computes[0], plain.computes[0]
    assert isinstance(host, ToyCompute)
    assert isinstance(known, ToyCompute)
    assert truth.ids == got.ids
    for position, token in enumerate(got.held.fed.ids):
        assert host.shown[position][0] == token
        assert np.array_equal(host.shown[position][1], known.shown[position][1])
    assert np.array_equal(host.shown[0][1], np.zeros(16, np.float32))


@pytest.mark.parametrize("where", CUTS)
@pytest.mark.parametrize("end", ENDS)
async def test_the_caches_hold_prompt_and_answer_however_it_ends(lines: list[Line], where: str, end: str) -> None:
    """The end falls on every column of a step, and what follows goes on from there without reading anything again."""
    cuts = CUTS[where]
    words = expected(cuts)
    for at in range(20, 29):
        lines.append(await line(cuts, oracle(words, 1.0)))
        lines[-1].chain.depth = depth(7)
        got = await answer_until(lines[-1], words, at, end)
        check_end(got, words, at, end)
        await _goes_on(lines[-1], got)


async def _goes_on(made: Line, got: Answer) -> None:
    """As one that was never drafted: the same follow-up in the same classes."""
    more = [*IDS, *got.ids, *b" And then?"]
    host = made.computes[0]
    assert isinstance(host, ToyCompute)
    before = host.prompt_columns + host.step_columns
    again = await made.answer(more, 12, held=got.held, start=got.held.end)
    reference = await line(made.cuts, None)
    plain = await reference.answer(IDS, len(got.ids) + 1)
    held = plain.held.cut(got.held.end)
    for compute in reference.computes:
        assert isinstance(compute, ToyCompute)
        compute.model.committed = compute.model.end = held.end
    expected_words = await reference.answer(more, 12, held=held, start=held.end)
    await reference.close()
    assert again.ids == expected_words.ids
    read = host.prompt_columns + host.step_columns - before
    assert read <= len(more) - got.held.end + 12 * 16


async def test_published_workers_hear_where_to_go_back_to(lines: list[Line]) -> None:
    words = expected((3,))
    lines.append(await line((3,), oracle(words, 0.7)))
    lines[-1].chain.depth = depth(5)
    await lines[-1].answer(IDS, 100)
    frames = lines[-1].wires[0].frames
    assert any(frame.control.rollback is not None for frame in frames)
    for before, after in pairwise(frames):
        end = before.position + before.columns
        if before.spec and after.position < end:
            assert after.control.rollback == after.position - before.position - 1
        else:
            assert after.control.rollback is None
            assert after.position == end
    assert all(frame.kind is FrameKind.HIDDEN_BATCH for frame in frames if frame.spec)


async def test_a_draft_block_that_fails_costs_only_speed(lines: list[Line]) -> None:
    def broken(_position: int, _count: int) -> list[int]:
        raise GpuError("Numbers that are none.")

    lines.append(await line((3,), broken))
    got = await lines[-1].answer(IDS, 60)
    assert got.ids == expected((3,), most=60)


def test_held_goes_back_over_the_last_step_only() -> None:
    states = np.arange(12, dtype=np.float32).reshape(4, 3)
    held = (
        Held().grown([1, 2, 3], ColumnClass.PROMPT, states[:1]).grown([4, 5, 6], ColumnClass.STEP, states[1:], floor=3)
    )
    assert [live_start(held, ids, hybrid=True) for ids in ([1, 2, 3, 4, 9], [1, 2, 3, 9], [1, 2, 9])] == [4, 3, 0]
    assert live_start(held, [1, 2, 9], hybrid=False) == 2
    assert live_start(held, [1, 2, 3, 4, 5, 6], hybrid=True) == 5
    before = held.before(5)
    assert before is not None
    assert list(before) == list(states[2])
    assert held.before(3) is None
    assert held.cut(5).before(5) is not None
