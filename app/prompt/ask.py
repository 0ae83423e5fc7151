"""What a program asks of a model: a whole conversation, tools, and the form of the answer (spec: rooms §18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from app.engine.types import Sampling

Json = Mapping[str, object]
"""An object as the json module reads it. Never changed once it is part of an ask."""


@dataclass(frozen=True)
class UserMessage:
    """``aside``: said beside results of tools; it does not begin a new query."""

    text: str
    aside: bool = False


@dataclass(frozen=True)
class Call:
    """A tool's call in an earlier answer."""

    name: str
    arguments: Json


@dataclass(frozen=True)
class AssistantMessage:
    """An earlier answer as the client gives it back."""

    text: str
    calls: tuple[Call, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class ToolMessage:
    """What one call gave, in the order of the calls."""

    text: str


AskMessage = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True)
class Tool:
    """A function the model may call. ``parameters`` is its JSON Schema, of an object."""

    name: str
    description: str = ""
    parameters: Json = field(default_factory=dict[str, object])


class Choice(Enum):
    """Whether tools are called; a single one is named in ``Form.named`` (with REQUIRED)."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


@dataclass(frozen=True)
class JsonFormat:
    """The answer is JSON: any object, or with ``schema`` what that allows. ``name`` is for messages."""

    schema: Json | None = None
    name: str = ""


@dataclass(frozen=True)
class Form:
    """What the answer must look like. ``allowed`` None: every tool; ``most_calls`` 1..128."""

    choice: Choice = Choice.AUTO
    named: str = ""
    allowed: tuple[str, ...] | None = None
    parallel: bool = True
    most_calls: int = 128
    format: JsonFormat | None = None

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """The tools that may be called where those of ``names`` are offered; a choice may name others."""
        if self.choice is Choice.NONE:
            return ()
        if self.named:
            return (self.named,)
        return tuple(names) if self.allowed is None else self.allowed


class Effort(Enum):
    """How long a model that knows levels thinks."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    EXTRA = "xhigh"
    MOST = "max"


@dataclass(frozen=True)
class Thinking:
    """``budget``: tokens of reasoning after which its block is closed; None leaves it open."""

    on: bool = False
    effort: Effort | None = None
    budget: int | None = None


@dataclass(frozen=True)
class Ask:
    """One request. ``sampling`` None: the room's own; its seed is ``seed``, or drawn where that is None.

    ``bias`` is added to the logits of token ids.

    The last message is a user's or a tool's.
    """

    messages: tuple[AskMessage, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    form: Form = Form()
    thinking: Thinking = Thinking()
    most_tokens: int = 1_024
    sampling: Sampling | None = None
    seed: int | None = None
    bias: Mapping[int, float] = field(default_factory=dict[int, float])
    stops: tuple[str, ...] = ()
    client: str = ""
