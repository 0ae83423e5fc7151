"""The likeliest words drawn on the GPU, many at a time: the words and the caches are those of single steps."""

from __future__ import annotations

import pytest

from app.core.errors import GpuError
from app.engine.sampling import choose
from app.engine.types import Sampling
from app.room import generate
from app.room.held import Held
from tests.room.line import Line
from tests.room.lines import ENDS, IDS, answer_until, check_end, expected, host_of, line, oracle

PLACES = range(20, 29)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts are as long as they may be, however slow this machine is."""
    monkeypatch.setattr(generate, "AHEAD_SECONDS", 1e6)
    monkeypatch.setattr(generate, "MOST_AHEAD", 7)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("at", PLACES)
async def test_an_answer_ends_where_it_would_end_word_by_word(lines: list[Line], end: str, at: int) -> None:
    words = expected(())
    lines.append(await line((), None, hybrid=False))
    got = await answer_until(lines[-1], words, at, end)
    check_end(got, words, at, end)
    assert len(got.ids) < 3 or max(host_of(lines[-1]).bursts) > 1
    await _goes_on_as_word_by_word(lines, got.ids, got.held)


async def _goes_on_as_word_by_word(lines: list[Line], said: list[int], held: Held) -> None:
    more = [*IDS, *said, *b" And then?"]
    again = await lines[-1].answer(more, 12, held=held, start=held.end)
    lines.append(await line((), oracle([], 0.0), hybrid=False))
    first = await lines[-1].answer(IDS, len(said) + 1)
    plain = await lines[-1].answer(more, 12, held=first.held.cut(held.end), start=held.end)
    assert not host_of(lines[-1]).bursts
    assert again.ids == plain.ids


async def test_what_is_drawn_shared_drafted_or_split_comes_word_by_word(lines: list[Line]) -> None:
    for cuts, guess, sampling in (
        ((), None, Sampling(temperature=0.8, seed=7)), ((), oracle([], 0.0), Sampling()), ((3,), None, Sampling()),
    ):  # fmt: skip
        lines.append(await line(cuts, guess, hybrid=False))
        await lines[-1].answer(IDS, 40, choose=choose, sampling=sampling)
        assert not host_of(lines[-1]).bursts
    lines.append(await line((), None, hybrid=False))
    await lines[-1].answer(IDS, 40, stops=range(1000, 1040))
    assert not host_of(lines[-1]).bursts


async def test_numbers_that_are_none_end_the_answer(lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> None:
    lines.append(await line((), None, hybrid=False))

    async def broken(*_given: object) -> list[int]:
        raise GpuError("The GPU computed numbers that are not finite.")

    monkeypatch.setattr(host_of(lines[-1]), "greedy", broken)
    with pytest.raises(GpuError):
        await lines[-1].answer(IDS, 40)
