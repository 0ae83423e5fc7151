"""Drafts change how many words a step gives, never which: any sampler, any depth, any quality of drafts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from app.core.errors import GpuError
from app.engine.sampling import choose
from app.engine.types import ColumnClass, KvFormat, Part, Sampling
from app.room.chain import Chain
from app.room.checkpoints import live_start
from app.room.drafter import LookupWidths, Source
from app.room.frame import FrameKind
from app.room.generate import Choose, Ending, Generation
from app.room.held import Held
from app.room.meta import Meta
from app.room.ports import LoadRequest
from tests.room.line import PLEDGE, Answer, Line, depth
from tests.room.toy import HYBRID, LAYERS, RECORD, TABLE, ToyCompute, greedy, one_device

IDS = list(b"Once there was a room of devices.")
MOST = 200
CUTS = {"alone": (), "split": (3,), "three": (2, 4)}
SAMPLERS: dict[str, tuple[Choose, Sampling]] = {
    "greedy": (greedy, Sampling()),
    "creative": (choose, Sampling(temperature=0.8, top_k=40, seed=7)),
}

Guess = Callable[[int, int], list[int]]


def expected(cuts: Sequence[int], sampler: str = "greedy", most: int = MOST) -> list[int]:
    pick, sampling = SAMPLERS[sampler]
    return one_device(IDS, most, cuts, pick, sampling)


def oracle(answer: Sequence[int], right: float) -> Guess:
    """Guesses of which this share is right, whatever came before them."""
    text, dice = [*IDS, *answer], random.Random(5)

    def guess(position: int, count: int) -> list[int]:
        known = [text[p] if p < len(text) else 97 for p in range(position, position + count)]
        return [token if dice.random() < right else 96 for token in known]

    return guess


async def line(cuts: Sequence[int], guess: Guess | None, *, hybrid: bool = True) -> Line:
    record = HYBRID if hybrid else RECORD
    host = ToyCompute(guess=guess)
    made = Line([host, *(ToyCompute() for _ in cuts)], record, cuts, TABLE)
    part = Part(0, (*cuts, LAYERS)[0], embed=True, head=True, draft=guess is not None)
    return await made.start(LoadRequest(record.key, part, 2048, KvFormat.F16, PLEDGE))


@pytest.fixture
async def lines() -> AsyncIterator[list[Line]]:
    made: list[Line] = []
    yield made
    for one in made:
        await one.close()


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


def stop_after(count: int) -> Callable[[Generation], None]:
    def on_token(generation: Generation) -> None:
        generation.stopping = len(generation.answer) >= count

    return on_token


@pytest.mark.parametrize("where", CUTS)
@pytest.mark.parametrize("end", ["stop token", "stopped", "capped", "full"])
async def test_the_caches_hold_prompt_and_answer_however_it_ends(lines: list[Line], where: str, end: str) -> None:
    """The end falls on every column of a step, and what follows goes on from there without reading anything again."""
    cuts = CUTS[where]
    words = expected(cuts)
    for at in range(20, 29):
        lines.append(await line(cuts, oracle(words, 1.0)))
        lines[-1].chain.depth = depth(7)
        stops = [words[at]] if end == "stop token" else []
        got = await lines[-1].answer(
            IDS, at if end == "capped" else MOST, stops=stops, context=len(IDS) + at if end == "full" else 2048,
            on_token=stop_after(at) if end == "stopped" else lambda _generation: None,
        )  # fmt: skip
        if end == "stop token":
            at = words.index(words[at])
            assert (got.ending, got.ids, got.held.fed.ids) == (Ending.FINISHED, words[:at], (*IDS, *words[:at]))
        else:
            assert got.ending is {"stopped": Ending.STOPPED, "capped": Ending.CAPPED, "full": Ending.FULL}[end]
            assert got.ids == words[: len(got.ids)]
            assert len(got.ids) == at
            assert got.held.fed.ids == (*IDS, *got.ids[:-1])
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
