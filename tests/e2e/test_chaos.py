"""Two small rooms of processes, every kind of fault in each of them: the words stay those of an undisturbed device."""

import random
from dataclasses import replace

import pytest

from tests.e2e.chaos import QUIET_FIRST, Options, chaos, schedule
from tests.e2e.chaos_faults import Fault
from tests.room.loopback import use_loopback

SHORT = Options(minutes=0, seed=7, time_scale=0.4, questions=QUIET_FIRST + len(Fault), ending=40)


def test_a_schedule_has_every_fault_and_follows_its_seed() -> None:
    one, again, other = (schedule(SHORT.questions, random.Random(seed)) for seed in (1, 1, 2))
    assert one == again != other
    assert set(one[QUIET_FIRST:]) == set(other[QUIET_FIRST:]) == set(Fault)


async def test_rooms_under_chaos_say_what_they_say_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong or lost word fails at once. Whether faults fell inside answers is up to the machine's pace, so a run
    in which they did not is made once more with another schedule."""
    use_loopback(monkeypatch)
    for seed in (7, 1):
        outcome = await chaos(replace(SHORT, seed=seed))
        print(outcome.table())
        assert outcome.tally.answers == 2 * SHORT.questions
        if not outcome.complaints():
            return
    pytest.fail("; ".join(outcome.complaints()))
