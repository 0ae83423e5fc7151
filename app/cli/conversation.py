"""A talk with a room's model: what was said so far, and the ask that comes next (spec: product §4.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.engine.types import Sampling
from app.prompt.ask import Ask, AskMessage, AssistantMessage, Thinking, UserMessage

CLIENT = "pooled chat"


@dataclass(frozen=True)
class Conversation:
    """``temperature`` None leaves sampling to the room."""

    messages: tuple[AskMessage, ...] = ()
    system: str = ""
    think: bool = False
    most_tokens: int = 8192
    temperature: float | None = None

    def ask(self, question: str) -> Ask:
        return Ask(
            (*self.messages, UserMessage(question)),
            system=self.system,
            thinking=Thinking(on=self.think),
            most_tokens=self.most_tokens,
            sampling=None if self.temperature is None else Sampling(temperature=self.temperature),
            client=CLIENT,
        )

    def answered(self, question: str, answer: str) -> Conversation:
        """A broken answer is kept as far as it came; one of nothing is as if it had not been asked."""
        if not answer:
            return self
        return replace(self, messages=(*self.messages, UserMessage(question), AssistantMessage(answer)))

    def cleared(self) -> Conversation:
        return replace(self, messages=())
