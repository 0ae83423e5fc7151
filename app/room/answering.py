"""The answer being written, over all its attempts."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.prompt.chat import Style
from app.prompt.utf8 import Utf8Stream
from app.room.asks import Question
from app.room.drafter import Acceptance
from app.room.generate import Generation


@dataclass
class Answering:
    """Its question, what was shown of it, and the attempt that runs."""

    question: Question
    style: Style
    ids: list[int] = field(default_factory=list[int])
    text: str = ""
    stream: Utf8Stream = field(default_factory=Utf8Stream)
    stopping: bool = False
    generation: Generation | None = None
    reused: int = 0
    dropped: int = 0
    prompt_seconds: float = 0.0
    drafts: Acceptance = field(default_factory=Acceptance)

    @property
    def acceptance(self) -> Acceptance:
        """Of all attempts, the running one included."""
        return self.drafts.plus(self.generation.drafter.acceptance) if self.generation else self.drafts
