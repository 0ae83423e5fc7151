"""Drafts and saved states on real engines: what a hybrid says is what it says without them, alone and split."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from app.engine.checkpoints import CheckpointStore
from app.engine.sampling import choose
from app.engine.types import Sampling
from app.room import messages as m
from app.room.chain import Chain
from app.room.checkpoints import Keep
from app.room.copies import Copies, DiskCopies
from app.room.drafter import LookupWidths, Source
from app.room.lanes import Lane
from app.room.saves import Saves
from tests.e2e.engines import EngineLine, engine_line
from tests.room.line import Answer, depth

MODEL = Path(__file__).parents[1] / "data" / "golden" / "tiny-qwen35moe.gguf"
IDS = [int(i) for i in np.random.default_rng(8).integers(2, 1000, 40)]
MOST = 200
SAMPLERS = {"alone": Sampling(temperature=0.8, top_k=40, seed=3), "split": Sampling()}
CUTS = {"alone": (), "split": (2,)}


class Round:
    """A depth control that goes round all depths, one a step."""

    def __init__(self) -> None:
        self._steps = 0

    def depth(self, most: int) -> int:
        self._steps += 1
        return min(self._steps % 15 + 1, most)

    def measured(self, depth: int, tokens: int, seconds: float) -> None: ...


def guessing(answer: Sequence[int], wrong_every: int) -> Callable[..., Awaitable[list[int]]]:
    """The draft block's place taken by guesses of which one in ``wrong_every`` is wrong."""

    async def draft(_token: int, _before: object, position: int, count: int, _sequence: int) -> list[int]:
        places = range(position + 1, position + 1 + count)
        return [7 if p % wrong_every == 0 or p >= len(answer) else answer[p] for p in places]

    return draft


@pytest.mark.parametrize("where", CUTS)
async def test_every_depth_says_the_same(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """With guesses that are mostly right, some right, all wrong, and with the draft block's own."""
    monkeypatch.setattr(Chain, "lookup_widths", LookupWidths())
    sampling, line = SAMPLERS[where], await engine_line(MODEL, CUTS[where])
    line.chain.depth = depth(0)
    plain = await line.answer(IDS, MOST, choose=choose, sampling=sampling, context=512)
    assert set(plain.sources) == {Source.SAMPLED}
    for most, wrong_every in ((MOST, 19), (60, 5), (24, 1), (24, 0)):
        with monkeypatch.context() as patched:
            if wrong_every:
                patched.setattr(line.computes[0], "draft", guessing([*IDS, *plain.ids], wrong_every))
            line.chain.depth = Round()  # type: ignore[assignment]
            got = await line.answer(IDS, most, choose=choose, sampling=sampling, context=512)
        assert got.ids == plain.ids[:most]
        assert got.held.fed == plain.held.fed.cut(len(IDS) + most - 1)
        assert (Source.BLOCK in got.sources) == (wrong_every > 1)
        assert got.generation.drafter.acceptance.drafted
    await line.close()


async def test_a_saved_conversation_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """From the GPU after an edited question, and from the disk after every device has loaded again."""
    disks = [DiskCopies(CheckpointStore(tmp_path / str(i))) for i in range(2)]
    copies = [disk.of("ABCDEF") for disk in disks]
    one = Conversation(await engine_line(MODEL, (2,), copies=copies[1:]), copies[0])
    await one.online()
    first = await one.ask(IDS)
    start = [*IDS, *first.ids]
    second = await one.ask([*start, *IDS[:9]])
    again = await one.ask([*start, *IDS[:9]])
    assert (second.generation.start, again.generation.start) == (len(start) - 1, len(start) - 1)
    assert again.ids == second.ids
    edited = await one.ask([*start, *IDS[20:29]])
    await asyncio.sleep(0.3)
    await one.close()
    two = Conversation(await engine_line(MODEL, (2,), copies=copies[1:]), copies[0])
    await two.online()
    loaded = await two.ask([*start, *IDS[20:29]])
    assert loaded.generation.start == len(start) - 1
    assert loaded.ids == edited.ids
    afresh = await two.line.answer([*start, *IDS[20:29]], len(edited.ids), record=edited.held.fed, context=512)
    assert afresh.ids == edited.ids
    assert afresh.held.fed == edited.held.fed
    await two.close()
    for disk in disks:
        await disk.close()


class Conversation:
    """A line that keeps its answers' states."""

    def __init__(self, line: EngineLine, copies: Copies) -> None:
        self.line, self._lane = line, Lane()
        self._saves = Saves(line.computes[0], copies)

    async def online(self) -> None:
        await self._saves.reload(2)
        self.line.hops[0].slots = {slot for r in self.line.told if isinstance(r, m.Ready) for slot in r.slots}
        self._saves.online(self.line.chain)

    async def ask(self, ids: Sequence[int]) -> Answer:
        held, start = await self._saves.resume(self.line.chain, self._lane, ids)
        got = await self.line.answer(ids, 12, held=held, start=start, context=512)
        self._lane.held = await self._saves.keep(self.line.chain, self._lane, got.held, Keep.ANSWER)
        return got

    async def close(self) -> None:
        await self._saves.close()
        await self.line.close()
