"""What an undisturbed device answers: one process, the whole model, the same questions in the same order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.e2e.chaos_process import ChaosFailed, Program
from tests.e2e.chaos_room import Exchange, Room

SUBJECTS = ("a girl", "a boy", "an old sailor", "two cats", "a clock", "the moon", "a tailor", "a fox")
PLACES = ("in the mountains", "by the sea", "under a bridge", "in a tower", "on an island", "in a small town")


def questions(count: int, draw: random.Random) -> list[str]:
    """Different ones, in an order the seed gives."""
    every = [f"Tell me of {subject} {place}." for subject in SUBJECTS for place in PLACES]
    return draw.sample(every, count)


async def undisturbed(program: Program, home: Path, asked: list[str]) -> tuple[list[Exchange], float]:
    """With the seconds its program took to be ready."""
    room = Room(program, home, 0, hosted=True, draw=random.Random(0))
    try:
        await room.open()
        for number, question in enumerate(asked):
            await room.ask(room.creator, question)
            await room.creator.until(
                lambda s, n=number: s.phase == "online" and s.finished > n, room.patience, "an answer"
            )
        transcript = await room.creator.ask_for("transcript")
        await room.close()
    finally:
        await room.abandon()
    if [item["question"] for item in transcript] != asked or not _tells_much(transcript):
        raise ChaosFailed(f"the undisturbed device did not answer everything: {transcript}")
    return [Exchange(item["question"], item["answer"]) for item in transcript], room.creator.started_in


def _tells_much(transcript: list[dict[str, Any]]) -> bool:
    """An answer may end before its first word, most do not."""
    return 2 * sum(bool(item["answer"]) for item in transcript) > len(transcript)
