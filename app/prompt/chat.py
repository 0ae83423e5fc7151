"""What a conversation is made of, and how a room may colour its answers (spec: rooms §14.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from app.engine.types import Sampling

QUESTION_CHARS = 8_000


@dataclass(frozen=True)
class UserTurn:
    """A question as it was typed, and who asked."""

    text: str
    name: str = ""


@dataclass(frozen=True)
class AssistantTurn:
    """An answer as the exact ids that were sampled. ``open``: cut at its limit, may be continued."""

    ids: tuple[int, ...]
    open: bool = False


Turn = UserTurn | AssistantTurn


class Persona(Enum):
    """The room's manner of speaking."""

    DEFAULT = "default"
    CONCISE = "concise"
    ELI5 = "eli5"
    PIRATE = "pirate"
    HAIKU = "haiku"
    SWARM = "swarm"


SYSTEM_TEXTS = {
    Persona.DEFAULT: "",
    Persona.CONCISE: "Answer in as few words as the question allows.",
    Persona.ELI5: "Explain everything so that a curious child of five understands it.",
    Persona.PIRATE: "Speak like a good-natured pirate while staying helpful and correct.",
    Persona.HAIKU: "Answer every question with one haiku.",
    Persona.SWARM: "You are one mind shared by several devices; speak as the room and say we.",
}


class Wording(Enum):
    """How freely words are drawn."""

    CREATIVE = "creative"
    FOCUSED = "focused"
    EXACT = "exact"


SAMPLINGS = {
    Wording.CREATIVE: Sampling(temperature=0.8, top_k=40),
    Wording.FOCUSED: Sampling(temperature=0.4, top_k=20),
    Wording.EXACT: Sampling(),
}


class Length(Enum):
    """The longest answer."""

    SHORT = "short"
    NORMAL = "normal"
    LONG = "long"


LENGTH_TOKENS = {Length.SHORT: 150, Length.NORMAL: 400, Length.LONG: 1200}
THINKING_TOKENS = 1200


@dataclass(frozen=True)
class Style:
    """The room's settings that shape an answer; they travel with every question."""

    persona: Persona = Persona.DEFAULT
    wording: Wording = Wording.FOCUSED
    length: Length = Length.NORMAL
    thinking: bool = False

    @property
    def system(self) -> str:
        return SYSTEM_TEXTS[self.persona]

    @property
    def sampling(self) -> Sampling:
        return SAMPLINGS[self.wording]

    @property
    def most_tokens(self) -> int:
        return THINKING_TOKENS if self.thinking else LENGTH_TOKENS[self.length]
