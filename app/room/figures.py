"""What screens hear of an answer's speed: the map while it is written, the line when it is over (spec: rooms §17)."""

from __future__ import annotations

from app.core.clock import Clock
from app.room.answer_line import AnswerFigures, answer_line
from app.room.answering import Answering
from app.room.crowd import Crowd
from app.room.dealing import Dealing
from app.room.generate import Ending
from app.room.room_map import room_map

MAP_PERIOD = 0.8


class Figures:
    """Of the answers of one model host; screens have room for one's at a time."""

    def __init__(self, crowd: Crowd, dealing: Dealing, clock: Clock) -> None:
        self._crowd = crowd
        self._dealing = dealing
        self._clock = clock
        self._told_at = 0.0

    def tick(self, now: Answering) -> None:
        if self._clock.now() - self._told_at >= MAP_PERIOD:
            self.tell(now, live=True)

    def tell(self, now: Answering, *, live: bool) -> None:
        self._told_at = self._clock.now()
        planned, chain, pace = self._dealing.planned, self._dealing.chain, now.pace
        if planned is None or chain is None:
            return
        speed, accepted = pace.recent(self._told_at), now.acceptance.share
        self._crowd.tell(room_map(planned, chain, speed, pace.words, accepted=accepted, live=live))

    def line(self, now: Answering, ending: Ending, forgotten: int = 0) -> str:
        """The line under the answer. What was measured is learned, too."""
        chain = self._dealing.chain
        if chain is not None:
            self._dealing.learn_speed(chain.stats.own * 1000)
        devices = 1 + len(chain.hops if chain else ())
        pace = now.pace.per_second
        return answer_line(
            AnswerFigures(len(now.ids), pace, devices, now.reused, now.acceptance, ending.value, forgotten)
        )
