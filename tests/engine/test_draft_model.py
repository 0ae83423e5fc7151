"""A draft model says what its engine alone would say, wherever the conversation goes back to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import ModelError, OutOfMemory
from app.engine.device import Gpu
from app.engine.draft_model import DraftModel, plan_draft
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.loading import roomy
from app.engine.options import MOST_SEQUENCES, Options, taken_bytes
from app.engine.types import ColumnClass, Part
from tests.engine.models import Shape, write_model

IDS = [int(i) for i in np.random.default_rng(3).integers(2, 512, 60)]
LARGE, SMALL = Shape("llama", layers=2), Shape("llama", layers=1, hidden=128, inner=256, heads=2, kv_heads=1)
OPTIONS = Options(context=128, pledge=256 << 20)
WHOLE = Part(0, 2, embed=True, head=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[GgufFile, GgufFile]:
    folder = tmp_path_factory.mktemp("models")
    large, small = (write_model(folder / f"{s.hidden}.gguf", s) for s in (LARGE, SMALL))
    return GgufFile.open(large), GgufFile.open(small)


@pytest.fixture(scope="module")
def draft(gpu: Gpu, files: tuple[GgufFile, GgufFile]) -> Iterator[DraftModel]:
    made = plan_draft(files[0], WHOLE, OPTIONS, files[1], gpu).load(gpu)
    yield made
    made.close()


class Alone:
    """The small model without anything kept: every conversation from the beginning."""

    def __init__(self, gpu: Gpu, file: GgufFile) -> None:
        self._engine = Engine.load(gpu, file, Part(0, 1, embed=True, head=True), OPTIONS)

    def says(self, ids: Sequence[int], count: int, kinds: Sequence[tuple[int, ColumnClass]]) -> list[int]:
        start = 0
        for end, kind in kinds:
            self._engine.tokens(ids[start:end], start, kind)
            start = end
        return list(self._engine.greedy(ids[-1], len(ids) - 1, (), count))

    def close(self) -> None:
        self._engine.close()


def test_it_goes_on_from_any_common_beginning(gpu: Gpu, files: tuple[GgufFile, GgufFile], draft: DraftModel) -> None:
    """Forwards, over right guesses, back over wrong ones, to another conversation and back to a short one."""
    alone, prompt = Alone(gpu, files[1]), ColumnClass.PROMPT
    first = draft.guesses(IDS[:40], 7)
    assert first == alone.says(IDS[:40], 7, [(39, prompt)])
    right = [*IDS[:40], *first[:3]]
    assert draft.guesses(right, 5) == first[3:7] + draft.guesses([*right, *first[3:7]], 1)
    wrong = [*IDS[:40], first[0], 5]
    assert draft.guesses(wrong, 7) == alone.says(wrong, 7, [(39, prompt), (41, ColumnClass.STEP)])
    other = [*IDS[:10], *IDS[30:60]]
    assert draft.guesses(other, 3) == alone.says(other, 3, [(10, prompt), (39, prompt)])
    assert draft.guesses(IDS[:1], 3) == alone.says(IDS[:1], 3, [])
    alone.close()


def test_what_was_only_read_is_not_read_again(
    files: tuple[GgufFile, GgufFile], draft: DraftModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    tokens = Engine.tokens

    def counted(engine: Engine, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int) -> object:
        read.append(len(ids))
        return tokens(engine, ids, position, kind, sequence)

    monkeypatch.setattr(Engine, "tokens", counted)
    fresh = [7, *IDS]
    assert draft.guesses(fresh[:30], 0) == []
    assert draft.guesses(fresh[:20], 0) == []
    assert draft.guesses(fresh[:50], 0) == []
    found = draft.guesses(fresh[:50], 4)
    assert draft.guesses([*fresh[:50], *found, 3], 2)
    assert read == [29, 20, 1]


def test_conversations_of_several_sequences_do_not_disturb_one_another(
    draft: DraftModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = draft.guesses(IDS[:40], 4), draft.guesses(IDS[5:40], 4)
    assert [draft.guesses(IDS[:40], 4, 1), draft.guesses(IDS[5:40], 4, 2)] == [first, second]
    read: list[int] = []
    monkeypatch.setattr(Engine, "tokens", lambda _engine, ids, *_: read.append(len(ids)))
    assert [draft.guesses(IDS[:40], 4, 1), draft.guesses(IDS[5:40], 4, 2)] == [first, second]
    assert not read
    assert draft.guesses(IDS[:40], 4, 4) == []


def test_it_guesses_up_to_the_end_of_its_context_and_not_past_it(draft: DraftModel) -> None:
    long = (IDS * 3)[:130]
    assert [len(draft.guesses(long[:end], 4)) for end in (124, 126, 128, 129, 130)] == [4, 3, 1, 0, 0]
    assert draft.guesses([], 4) == []


def test_after_a_failure_everything_is_read_again(draft: DraftModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = draft.guesses(IDS[:40], 4)
    with monkeypatch.context() as broken:
        broken.setattr(Engine, "greedy", lambda *_given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            draft.guesses(IDS[:45], 4)
    assert draft.guesses(IDS[:40], 4) == expected


def test_it_needs_the_same_tokens_and_room_beside_the_model(
    gpu: Gpu, files: tuple[GgufFile, GgufFile], tmp_path: Path
) -> None:
    large, small = files
    plan = plan_draft(large, WHOLE, OPTIONS, small, gpu)
    own = taken_bytes(large, WHOLE, OPTIONS, gpu.info.binding)
    assert (plan.options.context, plan.options.sequences) == (OPTIONS.context, MOST_SEQUENCES)
    for pledge in range(own, own + 2 * plan.options.pledge, plan.options.pledge // 5):
        try:
            found = plan_draft(large, WHOLE, replace(OPTIONS, pledge=pledge), small, gpu).options
        except OutOfMemory:
            continue
        left = replace(OPTIONS, pledge=pledge - found.pledge)
        assert found.pledge + own <= pledge
        assert found.sequences == 1 or roomy(gpu, large, WHOLE, left).sequences >= found.sequences
    with pytest.raises(OutOfMemory):
        plan_draft(large, WHOLE, replace(OPTIONS, pledge=own + plan.options.pledge // 2), small, gpu)
    share = replace(WHOLE, hi=1)
    assert plan_draft(large, share, OPTIONS, small, gpu).options.sequences == 1
    other = GgufFile.open(write_model(tmp_path / "other.gguf", replace(SMALL, vocab=640)))
    with pytest.raises(ModelError, match="other tokens"):
        plan_draft(large, WHOLE, OPTIONS, other, gpu)
    hybrid = GgufFile.open(Path(__file__).parents[1] / "data" / "golden" / "tiny-qwen35.gguf")
    with pytest.raises(ModelError, match="recurrent"):
        plan_draft(hybrid, WHOLE, OPTIONS, hybrid, gpu)
