"""An ask as a prompt: by the model's template, going on from the answers whose exact ids are known (rooms §18)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app.core.errors import PromptError
from app.prompt.ask import Ask, AskMessage, AssistantMessage, Choice, Tool, UserMessage
from app.prompt.assembly import Assembled, assemble
from app.prompt.folding import settle, with_system
from app.prompt.known_answers import KnownAnswer, KnownAnswers, answer_keys
from app.prompt.messages import Messages
from app.prompt.opening import left_open, with_openings
from app.prompt.slots import Slots
from app.prompt.template import ChatTemplate, lost


@dataclass(frozen=True)
class AskPrompt:
    """``opened``: it ends inside a think block. ``known``: ids taken over from a known answer, 0 for none.

    Places in ``ids``: all before ``fixed`` is the same for every ask with this system text and these tools;
    ``turn`` is where the last user's words begin, and ``asked`` where they end: the prompt of the next question
    parts there when it leaves out the reasoning in between.
    """

    ids: tuple[int, ...]
    opened: bool
    fixed: int = 0
    turn: int = 0
    asked: int = 0
    known: int = 0


def tools_in_play(ask: Ask) -> tuple[Tool, ...]:
    """The tools its prompt names."""
    return () if ask.form.choice is Choice.NONE else ask.tools


def ask_prompt(template: ChatTemplate, ask: Ask, known: KnownAnswers) -> AskPrompt:
    """Raises PromptError for tools that the model does not know, and for a template that fails."""
    if tools_in_play(ask) and not template.profile.tools:
        raise PromptError("This model cannot call tools.", "Ask without tools, or choose a model made for them.")
    settled = _settled(template, ask)
    answers = _found(settled, known)
    draft = _Draft(template, _with_reasoning(settled, answers))
    best = max((at for at in answers if draft.keeps_reasoning(at)), default=None)
    going_on = _going_on(_Draft(template, settled, best), answers[best]) if best is not None else None
    return going_on or draft.prompt()


def remember(
    template: ChatTemplate,
    ask: Ask,
    prompt: AskPrompt,
    sampled: Sequence[int],
    answer: AssistantMessage,
    known: KnownAnswers,
) -> None:
    """Keeps an answer for the asks that go on from it. ``sampled``: its ids without the one that ended it."""
    settled = _settled(template, replace(ask, messages=(*ask.messages, answer)))
    *_, (_, key) = answer_keys(settled.system, tools_in_play(ask), settled.messages)
    ids = array("I", [*prompt.ids, *sampled])
    known.keep(key, KnownAnswer(ids, answer.reasoning.strip(), prompt.fixed, prompt.turn, prompt.asked))


def _going_on(draft: _Draft, answer: KnownAnswer) -> AskPrompt | None:
    """None for a template that does not write results behind an answer whose calls it is not shown."""
    try:
        return draft.prompt_after(answer)
    except PromptError:
        return None


def _settled(template: ChatTemplate, ask: Ask) -> Ask:
    """The ask in the order and the roles that the template takes."""
    if ask.system and not template.takes_system:
        return replace(ask, system="", messages=with_system(ask.system, ask.messages))
    return replace(ask, messages=settle(ask.messages))


def _found(ask: Ask, known: KnownAnswers) -> dict[int, KnownAnswer]:
    """The known answers by message; one whose reasoning the client gives back changed is not it."""
    found: dict[int, KnownAnswer] = {}
    for at, key in answer_keys(ask.system, tools_in_play(ask), ask.messages):
        message, answer = ask.messages[at], known.find(key)
        given = message.reasoning.strip() if isinstance(message, AssistantMessage) else ""
        if answer and given in ("", answer.reasoning):
            found[at] = answer
    return found


def _with_reasoning(ask: Ask, answers: dict[int, KnownAnswer]) -> Ask:
    """Known answers with the reasoning that the client left out."""
    messages: list[AskMessage] = list(ask.messages)
    for at, answer in answers.items():
        message = messages[at]
        if isinstance(message, AssistantMessage):
            messages[at] = replace(message, reasoning=answer.reasoning)
    return replace(ask, messages=tuple(messages))


@dataclass(frozen=True)
class _Draft:
    """An ask as the template writes it. ``exact``: the answer that only its sampled ids will stand for."""

    template: ChatTemplate
    ask: Ask
    exact: int | None = None

    def prompt(self) -> AskPrompt:
        done = self._assembled(self._checked)
        first = next(iter(self._slots_of(range(len(self.ask.messages)))), -1)
        turn, asked = self._query(done)
        return AskPrompt(tuple(done.ids), self._opened, done.begins.get(first, 0), turn, asked)

    def prompt_after(self, answer: KnownAnswer) -> AskPrompt:
        """What follows the known answer, behind its ids."""
        assert self.exact is not None
        slot = self._content.spans[self.exact].start
        if slot not in self._placed:
            raise lost()
        done = self._assembled(self._content.slots.after(self._checked, slot))
        turn, asked = answer.turn, answer.asked
        if self._last_query > self.exact:
            turn, asked = (place + len(answer.ids) for place in self._query(done))
        return AskPrompt((*answer.ids, *done.ids), self._opened, answer.fixed, turn, asked, len(answer.ids))

    def keeps_reasoning(self, upto: int) -> bool:
        """Whether the template writes all that was thought in the answers up to one of them."""
        return all(slot in self._placed for at, slot in self._content.thoughts.items() if at <= upto)

    def _query(self, done: Assembled) -> tuple[int, int]:
        slots = self._slots_of([self._last_query])
        begins = [done.begins[slot] for slot in slots if slot in done.begins]
        ends = [done.ends[slot] for slot in slots if slot in done.ends]
        return min(begins, default=0), max(ends, default=0)

    def _slots_of(self, messages: Iterable[int]) -> list[int]:
        return [slot for at in messages if at >= 0 for slot in self._content.spans[at]]

    @property
    def _last_query(self) -> int:
        return max((i for i, m in enumerate(self.ask.messages) if isinstance(m, UserMessage)), default=-1)

    @cached_property
    def _content(self) -> Messages:
        content = Messages(Slots())
        content.system(self.ask.system)
        content.add(self.ask.messages, self.exact)
        return content

    @cached_property
    def _text(self) -> str:
        thinking, content = self.ask.thinking, self._content
        effort = self.template.profile.effort_of(thinking)
        tools = content.tools(tools_in_play(self.ask))
        given = {"messages": content.rows, "tools": tools} | ({"reasoning_effort": effort} if effort else {})
        return self.template.text(content.slots, given, thinking=thinking.on, asks=True)

    @cached_property
    def _placed(self) -> frozenset[int]:
        slots = self._content.slots
        return frozenset(slots.all[number].origin for number in slots.origins(self._text))

    @cached_property
    def _checked(self) -> str:
        """What the template wrote, with nothing lost and the beginnings of old answers as they were."""
        content, opening = self._content, self.template.opening
        if not self._placed.issuperset(content.needed):
            raise lost()
        quiet = {} if self.ask.thinking.on else opening.of_unthought(self._unthought())
        return with_openings(self._text, content.slots, opening.head, quiet)

    def _assembled(self, text: str) -> Assembled:
        return assemble(self.template.tokenizer, self._content.slots, text)

    def _unthought(self) -> list[int]:
        """The slots of answers that stand without reasoning."""
        answers = [i for i, m in enumerate(self.ask.messages) if isinstance(m, AssistantMessage)]
        return self._slots_of(i for i in answers if self._content.thoughts.get(i) not in self._placed)

    @property
    def _opened(self) -> bool:
        ends = [match.end() for match in self._content.slots.pattern.finditer(self._text)]
        return left_open(self._text[ends[-1] if ends else 0 :])
