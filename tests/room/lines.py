"""Lines of toy devices that answer one prompt: what they are to say, and how an answer may end."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from app.engine.sampling import choose
from app.engine.types import KvFormat, Part, Sampling
from app.room.generate import Choose, Ending, Generation
from app.room.ports import LoadRequest
from tests.room.line import PLEDGE, Answer, Line
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


def host_of(line: Line) -> ToyCompute:
    """The model host's toy."""
    compute = line.computes[0]
    assert isinstance(compute, ToyCompute)
    return compute


ENDS = {"stop token": Ending.FINISHED, "stopped": Ending.STOPPED, "capped": Ending.CAPPED, "full": Ending.FULL}


async def answer_until(line: Line, words: Sequence[int], at: int, end: str) -> Answer:
    """An answer that ends in one of ``ENDS`` ways after ``at`` words."""
    return await line.answer(
        IDS, at if end == "capped" else MOST, stops=[words[at]] if end == "stop token" else [],
        context=len(IDS) + at if end == "full" else 2048,
        on_token=stop_after(at) if end == "stopped" else lambda _generation: None,
    )  # fmt: skip


def stop_after(count: int) -> Callable[[Generation], None]:
    def on_token(generation: Generation) -> None:
        generation.stopping = len(generation.answer) >= count

    return on_token


def check_end(got: Answer, words: list[int], at: int, end: str) -> None:
    """The first words that are said, and caches that hold prompt and answer, the last word excepted."""
    assert got.ending is ENDS[end]
    if end == "stop token":
        said = words[: words.index(words[at])]
        assert (got.ids, got.held.fed.ids) == (said, (*IDS, *said))
    else:
        assert got.ids == words[:at]
        assert got.held.fed.ids == (*IDS, *got.ids[:-1])
