"""Hybrid models: exactness across cuts, widths, chunks, wrong drafts, sequences and saved states."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from app.core.errors import OutOfMemory, PromptError, StateError
from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.ops import mask
from app.engine.options import Options, footprint
from app.engine.types import Candidates, ColumnClass, KvFormat, Part, Shaping, Step, Stepped
from tests.golden import DATA

STEP, PROMPT = ColumnClass.STEP, ColumnClass.PROMPT
IDS = [int(i) for i in np.random.default_rng(8).integers(2, 1000, 90)]
OPTIONS = Options(context=256, pledge=256 << 20, kv=KvFormat.F16, prompt_columns=64, sequences=3)


@pytest.fixture(scope="module", params=["tiny-qwen35", "tiny-qwen35moe"])
def file(request: pytest.FixtureRequest) -> GgufFile:
    return GgufFile.open(DATA / f"{request.param}.gguf")


def load(gpu: Gpu, file: GgufFile, options: Options = OPTIONS) -> Engine:
    part = Part(0, read_config(file).layers, embed=True, head=True, draft=True)
    return Engine.load(gpu, file, part, options)


@pytest.fixture(scope="module")
def engine(gpu: Gpu, file: GgufFile) -> Iterator[Engine]:
    engine = load(gpu, file)
    yield engine
    engine.close()


def step(engine: Engine, start: int, end: int, size: int = 1, sequence: int = 0) -> np.ndarray:
    parts = [engine.tokens(IDS[p : min(p + size, end)], p, STEP, sequence) for p in range(start, end, size)]
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", [STEP, PROMPT], ids=lambda k: k.value)
def test_cut_at_every_layer_border_equals_the_whole(
    gpu: Gpu, file: GgufFile, engine: Engine, kind: ColumnClass
) -> None:
    expected = [engine.tokens(IDS[:40], 0, kind), engine.tokens(IDS[40:45], 40, STEP)]
    layers = engine.config.layers
    for cut in range(1, layers):
        low = Engine.load(gpu, file, Part(0, cut, embed=True), OPTIONS)
        high = Engine.load(gpu, file, Part(cut, layers), OPTIONS)
        assert np.array_equal(high.hidden(low.tokens(IDS[:40], 0, kind), 0, kind), expected[0])
        assert np.array_equal(high.hidden(low.tokens(IDS[40:45], 40, STEP), 40, STEP), expected[1])
        low.close()
        high.close()


def test_step_columns_have_the_same_bits_at_any_width(engine: Engine) -> None:
    expected = step(engine, 0, 45)
    for size in (2, 7, 16):
        assert np.array_equal(step(engine, 0, 45, size), expected)


def test_prompt_columns_have_the_same_bits_under_any_chunking(engine: Engine) -> None:
    at_once = engine.tokens(IDS, 0, PROMPT)
    after = step(engine, 90, 90 + 1) if len(IDS) > 90 else engine.tokens(IDS[:2], 90, STEP)
    for size in (1, 16, 37):
        parts = [engine.tokens(IDS[s : s + size], s, PROMPT) for s in range(0, len(IDS), size)]
        assert np.array_equal(np.concatenate(parts), at_once)
        assert np.array_equal(engine.tokens(IDS[:2], 90, STEP), after)


def test_wrong_drafts_leave_no_trace(engine: Engine) -> None:
    engine.tokens(IDS[:20], 0, PROMPT)
    expected = step(engine, 20, 50)
    engine.tokens(IDS[:20], 0, PROMPT)
    got: list[np.ndarray] = []
    for position, accepted in zip([20, 23, 24, 32, 33], [3, 1, 8, 1, 16], strict=True):
        wrong = [*IDS[position : position + accepted], *[5] * (16 - accepted)]
        got.append(engine.tokens(wrong, position, STEP)[:accepted])
    got.append(step(engine, 49, 50))
    assert np.array_equal(np.concatenate(got), expected)


def test_it_can_go_back_over_its_last_step_and_no_further(engine: Engine) -> None:
    engine.tokens(IDS[:20], 0, PROMPT)
    expected = engine.tokens(IDS[20:26], 20, STEP)
    for back in (5, 3, 0):
        assert np.array_equal(engine.tokens(IDS[20 + back : 26], 20 + back, STEP), expected[back:])
        engine.tokens(IDS[:20], 0, PROMPT)
        engine.tokens(IDS[20:26], 20, STEP)
    for position in (19, 27):
        with pytest.raises(StateError, match="from 20 to 26"):
            engine.tokens(IDS[:1], position, STEP)
    assert np.array_equal(engine.tokens(IDS[25:26], 25, STEP), expected[5:])


def test_greedy_leaves_the_caches_at_prompt_and_answer(engine: Engine) -> None:
    engine.tokens(IDS[:20], 0, PROMPT)
    answer = list(engine.greedy(IDS[20], 20, [], 12))
    ids = [IDS[20], *answer[:-1]]
    expected = engine.decode(answer[-1], 32)
    for stops, taken in (([], 12), ([], 5), ([answer[6]], answer.index(answer[6]) + 1)):
        engine.tokens(IDS[:20], 0, PROMPT)
        assert list(itertools.islice(engine.greedy(IDS[20], 20, stops, 12), taken)) == answer[:taken]
        for i in range(taken, 12):
            engine.decode(ids[i], 20 + i)
        got = engine.decode(answer[-1], 32)
        assert np.array_equal(got.logits, expected.logits)
        assert np.array_equal(got.ids, expected.ids)


def test_sequences_in_one_pass_have_the_bits_they_have_alone(engine: Engine) -> None:
    alone: list[np.ndarray] = []
    for sequence, start in enumerate((30, 10, 21)):
        engine.tokens(IDS[:start], 0, PROMPT, sequence)
        alone.append(np.stack([engine.decode(IDS[p], p, sequence).logits for p in range(start, start + 4)]))
    for sequence, start in enumerate((30, 10, 21)):
        engine.tokens(IDS[:start], 0, PROMPT, sequence)
    together = [together_at(engine, [(start + i, s) for s, start in enumerate((30, 10, 21))]) for i in range(2)]
    together.append([engine.decode(IDS[32], 32, 0)])
    together.append(together_at(engine, [(23, 2), (12, 1), (33, 0)]))
    assert all(np.array_equal(together[i][s].logits, alone[s][i]) for i in range(2) for s in range(3))
    assert np.array_equal(together[2][0].logits, alone[0][2])
    for candidates, expected in zip(together[3], (alone[2][2], alone[1][2], alone[0][3]), strict=True):
        assert np.array_equal(candidates.logits, expected)
    with pytest.raises(PromptError, match="one step at a time"):
        engine.step([Step([1], 5), Step([1], 6)])
    with pytest.raises(PromptError, match="columns"):
        engine.step([Step([1] * 9, 5), Step([1] * 8, 6, 1)])


def together_at(engine: Engine, places: list[tuple[int, int]]) -> list[Candidates]:
    """A step of the token at each (position, sequence), all in one pass."""
    return [stepped.candidates[0] for stepped in engine.step([Step([IDS[p]], p, s) for p, s in places])]


def test_drafts_of_several_sequences_in_one_pass_have_the_bits_they_have_alone(engine: Engine) -> None:
    """One goes on after its drafts were wrong, another after they were right."""

    def rounds(together: bool) -> list[Stepped]:
        for sequence, start in enumerate((30, 10)):
            engine.tokens(IDS[:start], 0, PROMPT, sequence)
        found: list[Stepped] = []
        for first, second in ((30, 10), (31, 14)):
            steps = [Step(IDS[first : first + 3], first), Step(IDS[second : second + 4], second, 1)]
            found += engine.step(steps, states=True) if together else [engine.step([s], states=True)[0] for s in steps]
        return found

    for alone, shared in zip(rounds(together=False), rounds(together=True), strict=True):
        assert alone.states is not None
        assert shared.states is not None
        assert np.array_equal(alone.states, shared.states)
        assert all(np.array_equal(a.logits, b.logits) for a, b in zip(alone.candidates, shared.candidates, strict=True))


def test_saved_states_come_back_bit_for_bit(engine: Engine) -> None:
    engine.tokens(IDS[:33], 0, PROMPT)
    step(engine, 33, 40, 3)
    expected = engine.decode(IDS[40], 40).logits
    engine.tokens(IDS[:33], 0, PROMPT)
    step(engine, 33, 40, 3)
    engine.save("answer")
    end, pieces = engine.export()
    exported = np.concatenate(list(pieces))
    assert np.array_equal(engine.decode(IDS[40], 40).logits, expected)
    engine.tokens(IDS[50:80], 0, PROMPT)
    assert engine.restore("answer") == 40
    assert np.array_equal(engine.decode(IDS[40], 40).logits, expected)
    assert engine.restore("answer", sequence=2) == 40
    assert np.array_equal(engine.decode(IDS[40], 40, sequence=2).logits, expected)
    engine.adopt(end, exported, sequence=1)
    assert np.array_equal(engine.decode(IDS[40], 40, sequence=1).logits, expected)
    engine.drop("answer")
    with pytest.raises(StateError, match="answer"):
        engine.restore("answer")
    with pytest.raises(StateError, match="not complete"):
        engine.adopt(end, exported[:-4])


def test_what_is_saved_can_end_within_the_last_step(engine: Engine) -> None:
    engine.tokens(IDS[:20], 0, PROMPT)
    step(engine, 20, 24)
    expected = engine.decode(IDS[24], 24).logits
    engine.tokens(IDS[:20], 0, PROMPT)
    engine.tokens([*IDS[20:24], 7, 8, 9], 20, STEP)
    with pytest.raises(StateError, match="from 20 to 27"):
        engine.save("early", 19)
    engine.save("early", 24)
    assert np.array_equal(engine.decode(IDS[24], 24).logits, expected)
    assert engine.restore("early") == 24
    assert np.array_equal(engine.decode(IDS[24], 24).logits, expected)
    engine.drop("early")


def test_a_saved_state_counts_against_the_pledge(gpu: Gpu, file: GgufFile) -> None:
    tight = load(gpu, file)
    tight.tokens(IDS[:40], 0, PROMPT)
    tight.allocator.pledge = tight.allocator.used + 4096
    with pytest.raises(OutOfMemory, match="saved conversations"):
        tight.save("one")
    assert not tight.saved
    tight.close()


def test_footprint_is_what_gets_allocated(gpu: Gpu, file: GgufFile) -> None:
    part = Part(0, read_config(file).layers, embed=True, head=True, draft=True)
    planned = footprint(file, part, OPTIONS, gpu.caps.binding)
    engine = load(gpu, file)
    used = engine.allocator.by_purpose()
    assert used["KV cache"] + used["recurrent state"] == planned.caches
    assert used["scratch"] == planned.scratch
    assert planned.weights <= used["weights"] <= planned.weights * 1.3 + (1 << 20)
    engine.close()


def test_drafts_follow_the_draft_block_one_by_one(engine: Engine) -> None:
    states = engine.tokens(IDS[:20], 0, PROMPT)
    before = np.concatenate([np.zeros_like(states[:1]), states[:-1]])
    engine.learn(IDS[:20], before, 0, PROMPT)
    drafts = engine.draft(IDS[20], states[-1], 20, 4)
    first = engine.draft_logits([IDS[20]], states[-1:], 20)[0]
    assert drafts[0] == first.argmax()
    assert len(drafts) == 4
    assert engine.draft(IDS[20], states[-1], 20, 4) == drafts


def test_a_mask_leaves_only_what_it_allows(engine: Engine) -> None:
    states = engine.tokens(IDS[:3], 0, STEP)
    words = -(-engine.config.vocab // 32)
    masks = np.random.default_rng(3).integers(0, 1 << 32, (3, words), dtype=np.uint32)
    masks[2] = 0
    masks[2, 5] = 0b1001
    logits = mask.reference(engine.logits(states), masks)
    for row, candidates in zip(logits, engine.candidates(states, Shaping(masks)), strict=True):
        order = np.lexsort((np.arange(len(row)), -row))[:64]
        expected = [int(i) for i in order if row[i] > mask.FORBIDDEN]
        assert candidates.ids.tolist() == expected
        assert np.array_equal(candidates.logits, row[expected])
        assert candidates.non_finite == 0
        shares = np.exp(row[row > mask.FORBIDDEN].astype(np.float64))
        assert abs(candidates.log_sum_exp - np.log(shares.sum())) < 1e-4
    assert engine.candidates(states, Shaping(masks))[2].ids.tolist() in ([160, 163], [163, 160])
    with pytest.raises(PromptError, match="does not fit"):
        engine.candidates(states, Shaping(masks[:2]))


def test_a_bias_lifts_an_id_that_was_not_among_the_best(engine: Engine) -> None:
    states = engine.tokens(IDS[:2], 0, STEP)
    logits = engine.logits(states)
    plain = engine.candidates(states)
    last = int(np.argmin(logits[0]))
    lifted = engine.candidates(states, Shaping(bias={last: 1_000.0, 10**9: 5.0}))
    assert last not in plain[0].ids
    assert [lifted[0].best, lifted[1].best] == [last, last]
    assert lifted[0].ids[1:].tolist() == plain[0].ids[:-1].tolist()
    assert np.array_equal(lifted[0].logits[1:], plain[0].logits[:-1])
    none = engine.candidates(states, Shaping(bias={last: 0.0}))
    assert [n.ids.tolist() for n in none] == [p.ids.tolist() for p in plain]
    assert abs(none[0].log_sum_exp - plain[0].log_sum_exp) < 1e-4


def test_a_bias_obeys_the_mask(engine: Engine) -> None:
    states = engine.tokens(IDS[:1], 0, STEP)
    masks = np.zeros((1, -(-engine.config.vocab // 32)), np.uint32)
    masks[0, 5] = 0b1001
    shaped = engine.candidates(states, Shaping(masks, {160: 1_000.0, 7: 1_000.0}))[0]
    assert shaped.ids.tolist() == [160, 163]
