"""The answer being written, over all its attempts: what every kind of answer has, and a person's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.engine.types import Sampling
from app.prompt.chat import Style
from app.prompt.language import Language
from app.prompt.utf8 import Utf8Stream
from app.room.asks import Question
from app.room.chain import Chain
from app.room.checkpoints import Mark
from app.room.drafter import Acceptance, Source
from app.room.generate import Generation
from app.room.pace import Pace
from app.room.screens import Shown
from app.room.segments import Fed
from app.room.steering import Free, Steering


@dataclass(frozen=True)
class Running:
    """What an answer is written with; ``context`` in positions."""

    chain: Chain
    language: Language
    context: int


@dataclass(frozen=True)
class Draft:
    """One attempt's task. ``ids``: the prompt and the words said so far; ``most`` new ones at most.

    ``marks`` finds the places of the prompt that are likely to be gone on from. ``shared``: so many of ``ids`` other
    conversations begin with as well; None for the people's, of which there is one.
    """

    ids: tuple[int, ...]
    most: int
    sampling: Sampling
    marks: Callable[[], Sequence[Mark]] = tuple
    steering: Steering = field(default_factory=Free)
    shared: int | None = 0


@dataclass
class Answering:
    """``ids`` were said; ``record`` is which class the positions of prompt and words had when computed.

    ``pace`` is how fast the words came, ``shown`` what screens see of it once it has begun.
    """

    ids: list[int] = field(default_factory=list[int])
    record: Fed = field(default_factory=Fed)
    stopping: bool = False
    generation: Generation | None = None
    reused: int = 0
    prompt_seconds: float = 0.0
    drafts: Acceptance = field(default_factory=Acceptance)
    pace: Pace = field(default_factory=Pace)
    shown: Shown | None = None

    @property
    def acceptance(self) -> Acceptance:
        """Of all attempts, the running one included."""
        return self.drafts.plus(self.generation.drafter.acceptance) if self.generation else self.drafts


class Written(Protocol):
    """An answer a ``Writer`` can write."""

    @property
    def now(self) -> Answering: ...

    async def draft(self, running: Running) -> Draft:
        """The next attempt's task. Raises PromptError where the prompt does not fit."""
        ...

    def say(self, token: int, source: Source) -> bool:
        """One more word; True ends the answer with it."""
        ...


@dataclass
class PersonsAnswer(Answering):
    """A person's question, and what was shown of its answer."""

    question: Question = field(default_factory=lambda: Question("", "", "", ""))
    style: Style = field(default_factory=Style)
    text: str = ""
    stream: Utf8Stream = field(default_factory=Utf8Stream)
    dropped: int = 0
