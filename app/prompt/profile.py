"""What a model's chat template says about the model: tools, how calls are written, thinking (rooms §18.5)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from app.prompt.ask import Effort, Thinking
from app.prompt.grammar.style import CallStyle
from app.prompt.opening import THINK_OPEN, Opening

XML_TAGS = re.compile(r"<function=|<parameter=")
CALL_TAG, EFFORT = "<tool_call>", "reasoning_effort"
NEAREST = {
    Effort.LOW: ("low",),
    Effort.MEDIUM: ("medium",),
    Effort.HIGH: ("high", "xhigh", "max"),
    Effort.EXTRA: ("xhigh", "max", "high"),
    Effort.MOST: ("max", "xhigh", "high"),
}


@dataclass(frozen=True)
class Profile:
    """``thinking``: it can think. ``opened``: its prompt opens the think block. ``efforts``: levels it knows."""

    tools: bool
    style: CallStyle
    thinking: bool = False
    opened: bool = False
    effort: bool = False
    levels: frozenset[str] = field(default_factory=frozenset[str])

    def effort_of(self, thinking: Thinking) -> str | None:
        """The level the template is told; None when it is told none, as for a medium one it has no word for."""
        if not (self.effort and thinking.on and thinking.effort):
            return None
        named = next((level for level in NEAREST[thinking.effort] if level in self.levels), None)
        return named or (None if thinking.effort is Effort.MEDIUM else thinking.effort.value)


def profile_of(source: str, opening: Opening) -> Profile:
    """Read from the template's own text, and from how it begins answers."""
    levels = frozenset(e.value for e in Effort if re.search(rf"""['"]{e.value}['"]""", source))
    return Profile(
        tools=CALL_TAG in source,
        style=CallStyle.XML if XML_TAGS.search(source) else CallStyle.JSON,
        thinking=opening.quiet != opening.thinking or THINK_OPEN in opening.thinking,
        opened=THINK_OPEN in opening.thinking and "</think>" not in opening.thinking,
        effort=EFFORT in source,
        levels=levels,
    )
