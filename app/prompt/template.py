"""A model's own chat template turned into token ids, with client text kept apart from the format.

The template never sees what people wrote: it gets placeholders, and places them. Only text that the template
itself wrote is searched for special tokens, so nothing in a message can become one. Earlier answers enter as
the exact ids that were sampled, so a follow-up prompt extends the caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app.core.errors import PromptError
from app.prompt.assembly import assemble
from app.prompt.chat import AssistantTurn, Turn, UserTurn
from app.prompt.opening import THINK_CLOSE, Opening, opening_of, with_openings
from app.prompt.profile import Profile, profile_of
from app.prompt.sandbox import render_bounded
from app.prompt.slots import Slots
from app.prompt.tokenizer import Tokenizer


@dataclass(frozen=True)
class ChatTemplate:
    """One model file's template. ``bos`` and ``eos`` are the texts the template may print.

    ``calls`` False: the model does not know the tags of calls, whatever the template says.
    """

    source: str
    tokenizer: Tokenizer
    bos: str = ""
    eos: str = ""
    calls: bool = True

    def render(self, turns: Sequence[Turn], system: str = "", *, thinking: bool = False) -> list[int]:
        """Ids of the whole conversation, ready for the next answer, or for going on with an open one.

        Raises PromptError when the template fails or loses the last message.
        """
        slots = Slots()
        messages, begun = self._messages(turns, system, slots, thinking=thinking)
        still_open = bool(turns) and isinstance(turns[-1], AssistantTurn) and turns[-1].open
        text = self.text(slots, {"messages": messages}, thinking=thinking, asks=not still_open)
        text = with_openings(text, slots, self.opening.head, begun)
        if slots.all and slots.origins(text)[-1:] != [len(slots.all) - 1]:
            raise lost()
        return assemble(self.tokenizer, slots, slots.cut_after_last(text) if still_open else text).ids

    def text(self, slots: Slots, variables: Mapping[str, object], *, thinking: bool, asks: bool) -> str:
        """What the template writes, placeholders and all. ``asks``: with the beginning of an answer."""
        given = {
            "add_generation_prompt": asks,
            "enable_thinking": thinking,
            "bos_token": self.bos,
            "eos_token": self.eos,
            "tools": None,
        }
        return render_bounded(self.source, given | dict(variables), slots.in_json)

    def for_asks(self) -> ChatTemplate:
        """The template that writes the asks of programs."""
        return self

    @cached_property
    def profile(self) -> Profile:
        found = profile_of(self.source, self.opening)
        return replace(found, tools=found.tools and self.calls)

    @cached_property
    def opening(self) -> Opening:
        """Found by rendering a question; nothing is known of a template that fails on one."""
        try:
            return opening_of(self._beginning(thinking=False), self._beginning(thinking=True))
        except PromptError:
            return Opening()

    @cached_property
    def takes_system(self) -> bool:
        """Whether it has a place for the system's text."""
        slots = Slots()
        rows = [{"role": role, "content": slots.text("?")} for role in ("system", "user")]
        try:
            return len(slots.origins(self.text(slots, {"messages": rows}, thinking=False, asks=True))) == len(rows)
        except PromptError:
            return False

    def _beginning(self, *, thinking: bool) -> str:
        slots = Slots()
        messages = {"messages": [{"role": "user", "content": slots.text("?")}]}
        told, asked = (self.text(slots, messages, thinking=thinking, asks=asks) for asks in (False, True))
        return asked[len(told) :] if asked.startswith(told) else ""

    def _messages(
        self, turns: Sequence[Turn], system: str, slots: Slots, *, thinking: bool
    ) -> tuple[list[dict[str, str]], dict[int, str]]:
        """The rows a template reads, and by slot what stood behind the head of each answer."""
        rows = [{"role": "system", "content": slots.text(system)}] if system else []
        begun: dict[int, str] = {}
        for turn in turns:
            match turn:
                case UserTurn():
                    rows.append({"role": "user", "content": slots.text(turn.text)})
                case AssistantTurn():
                    begun |= self._begun(turn, len(slots.all), thinking=thinking)
                    rows.append({"role": "assistant", "content": slots.exact(turn.ids)})
        return rows, begun

    def _begun(self, turn: AssistantTurn, slot: int, *, thinking: bool) -> dict[int, str]:
        thought = self.tokenizer.special(THINK_CLOSE) in turn.ids or (turn.open and thinking)
        return {slot: self.opening.thinking} if thought else self.opening.of_unthought([slot])


def lost() -> PromptError:
    return PromptError("The model's chat template loses messages.", "Try another model file.")
