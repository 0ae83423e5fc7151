"""An agent's next step begins with the very ids that the caches hold."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.prompt.answer_stream import AnswerStream
from app.prompt.ask import Ask, AskMessage, AssistantMessage, Call, Thinking, Tool, ToolMessage, UserMessage
from app.prompt.ask_prompt import AskPrompt
from app.prompt.known_answers import KnownAnswer, KnownAnswers, answer_keys
from app.prompt.language import Language
from tests.prompt.chunks import ChunkTokenizer, chat_ml, shown
from tests.prompt.templates import XML, written_in

TOOLS = (Tool("read", "", {"properties": {"path": {"type": "string"}}}),)
JSON_CALL = '<tool_call>\n{"arguments": {"b": 1,  "a": [2]},"name":"read"}\n</tool_call>'
XML_CALL = (
    "<tool_call>\n<function=read>\n<parameter=b>\n 1\n</parameter>\n<parameter=a>\n[2]\n</parameter>\n"
    "</function>\n</tool_call>"
)
MANNERS: dict[str, tuple[Callable[[], Language], str]] = {
    "json": (chat_ml, JSON_CALL),
    "xml": (lambda: written_in(XML), XML_CALL),
}
each_manner = pytest.mark.parametrize(("make", "call"), MANNERS.values(), ids=MANNERS)


@dataclass
class Agent:
    """A client that sends the whole conversation again at every step, and a model that says what a test tells it,
    in tokens no encoder would choose: an answer is only found by its exact ids."""

    language: Language
    thinking: bool = False
    messages: list[AskMessage] = field(default_factory=list[AskMessage])
    known: KnownAnswers = field(default_factory=KnownAnswers)
    fed: tuple[int, ...] = ()
    """The prompt and the answer of the step before."""

    def step(self, message: AskMessage, answer: str) -> AskPrompt:
        self.messages.append(message)
        ask = Ask(tuple(self.messages), "Be brief.", TOOLS, thinking=Thinking(on=self.thinking))
        prompt = self.language.ask_prompt(ask, self.known)
        assert isinstance(self.language.tokenizer, ChunkTokenizer)
        sampled = self.language.tokenizer.spell(answer, (3,))
        stream = AnswerStream(self.language, TOOLS, opened=prompt.opened)
        for token in sampled:
            stream.add(token)
        stream.end()
        said = stream.answer
        assert said is not None
        self.language.remember(ask, prompt, sampled, said, self.known)
        self.messages.append(returned(said))
        self.fed = (*prompt.ids, *sampled)
        return prompt


def returned(said: AssistantMessage) -> AssistantMessage:
    """As clients give it back: trimmed, arguments in another order, no reasoning."""
    calls = tuple(Call(call.name, dict(sorted(call.arguments.items()))) for call in said.calls)
    return AssistantMessage(said.text.strip(), calls)


@each_manner
def test_each_step_goes_on_from_the_ids_of_the_last(make: Callable[[], Language], call: str) -> None:
    agent = Agent(make())
    agent.step(UserMessage("Look."), f"Well, \n\n{call}")
    for message in (ToolMessage("a"), ToolMessage("b"), UserMessage("And now?"), UserMessage("Thanks.")):
        before = agent.fed
        prompt = agent.step(message, call if isinstance(message, ToolMessage) else " Done. \n")
        assert prompt.ids[: len(before)] == before
        assert prompt.known == len(before)
        rest = shown(prompt.ids[len(before) :])
        assert rest.startswith("⟦<|im_end|>⟧\n⟦<|im_start|>⟧user\n")
        assert message.text in rest
        assert rest.endswith("⟦<think>⟧\n\n⟦</think>⟧\n\n")


@each_manner
def test_only_what_follows_the_answer_is_new(make: Callable[[], Language], call: str) -> None:
    agent = Agent(make())
    agent.step(UserMessage("Look."), call)
    before = agent.fed
    prompt = agent.step(ToolMessage("text"), "Done.")
    assert shown(prompt.ids[len(before) :]) == (
        "⟦<|im_end|>⟧\n⟦<|im_start|>⟧user\n⟦<tool_response>⟧\ntext\n⟦</tool_response>⟧⟦<|im_end|>⟧\n"
        "⟦<|im_start|>⟧assistant\n⟦<think>⟧\n\n⟦</think>⟧\n\n"
    )


def test_reasoning_the_client_left_out_stays_while_the_template_keeps_it() -> None:
    agent = Agent(written_in(XML), thinking=True)
    first = agent.step(UserMessage("Look."), f"Hm.\n</think>\n\n{XML_CALL}")
    assert first.opened
    before = agent.fed
    second = agent.step(ToolMessage("a"), "I see.\n</think>\n\nDone.")
    assert second.ids[: len(before)] == before
    assert (second.turn, second.asked, second.fixed) == (first.turn, first.asked, first.fixed)
    third = agent.step(UserMessage("And now?"), "\n</think>\n\nYes.")
    assert third.known == 0
    assert "Hm." not in shown([token for token in third.ids if token < 2000])
    assert third.ids[: second.asked] == second.ids[: second.asked]


def test_changed_reasoning_is_not_the_known_answer() -> None:
    agent = Agent(written_in(XML), thinking=True)
    agent.step(UserMessage("Look."), f"Hm.\n</think>\n\n{XML_CALL}")
    said = agent.messages[1]
    assert isinstance(said, AssistantMessage)
    for reasoning, found in (("Hm.", True), (" Hm.\n", True), ("Ha.", False)):
        messages = (agent.messages[0], replace(said, reasoning=reasoning), ToolMessage("a"))
        ask = Ask(messages, "Be brief.", TOOLS, thinking=Thinking(on=True))
        assert bool(agent.language.ask_prompt(ask, agent.known).known) is found


@pytest.mark.parametrize(
    "change",
    [
        lambda ask: replace(ask, system="Be long."),
        lambda ask: replace(ask, tools=()),
        lambda ask: replace(ask, tools=(Tool("read", "Another."),)),
        lambda ask: replace(ask, messages=(UserMessage("Look!"), *ask.messages[1:])),
        lambda ask: replace(ask, messages=(ask.messages[0], AssistantMessage("Done!"), ask.messages[2])),
        lambda ask: replace(
            ask, messages=(ask.messages[0], AssistantMessage("Done.", (Call("read", {}),)), ask.messages[2])
        ),
    ],
    ids=["system", "no tools", "tools", "question", "answer", "calls"],
)
def test_another_history_is_not_known(change: Callable[[Ask], Ask]) -> None:
    agent = Agent(chat_ml())
    agent.step(UserMessage("Look."), "Done.")
    ask = Ask((*agent.messages, UserMessage("More.")), "Be brief.", TOOLS)
    assert agent.language.ask_prompt(ask, agent.known).known
    changed = agent.language.ask_prompt(change(ask), agent.known)
    assert changed == agent.language.ask_prompt(change(ask), KnownAnswers())


def test_numbers_may_be_written_otherwise() -> None:
    def keys(number: object) -> list[tuple[int, bytes]]:
        return list(answer_keys("", (), [AssistantMessage("", (Call("read", {"x": [number]}),))]))

    assert keys(1) == keys(1.0)
    assert keys(1) != keys(1.5) != keys("1")
    assert keys(1e300) == keys(int(1e300))
    assert keys(float("inf")) != keys(1)


def test_places_are_those_of_the_longer_prompt() -> None:
    agent = Agent(chat_ml())
    agent.step(UserMessage("Look."), "Done.")
    prompt = agent.step(UserMessage("And now?"), "Done.")
    assert shown(prompt.ids[prompt.turn : prompt.asked]) == "user\nAnd now?"
    assert prompt.fixed == agent.language.ask_prompt(Ask((UserMessage("x"),), "Be brief.", TOOLS), agent.known).fixed


def test_a_template_that_wants_calls_before_results_is_asked_for_all() -> None:
    source = (
        "{% for m in messages %}"
        "{% if m.role == 'tool' and not loop.previtem.tool_calls %}{{ raise_exception('?') }}{% endif %}"
        "<tool_call><|im_start|>{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}{% endfor %}"
    )
    agent = Agent(written_in(source))
    agent.step(UserMessage("Look."), JSON_CALL)
    assert agent.step(ToolMessage("a"), "Done.").known == 0
    assert agent.step(UserMessage("More."), "Done.").known


def test_it_is_bounded_and_forgets_the_least_used() -> None:
    known = KnownAnswers(most_answers=3, most_ids=100)
    for name in b"abc":
        known.keep(bytes([name]), KnownAnswer(array("I", range(10)), ""))
    assert known.find(b"a")
    known.keep(b"d", KnownAnswer(array("I", range(10)), ""))
    assert [known.find(bytes([name])) is not None for name in b"abcd"] == [True, False, True, True]
    known.keep(b"e", KnownAnswer(array("I", range(95)), ""))
    assert len(known) == 1
    known.keep(b"f", KnownAnswer(array("I", range(101)), ""))
    assert len(known) == 0
    known.keep(b"g", KnownAnswer(array("I", range(100)), ""))
    known.keep(b"g", KnownAnswer(array("I", range(100)), ""))
    assert known.find(b"g")
    known.clear()
    assert known.find(b"g") is None


KEYED = st.lists(
    st.builds(AssistantMessage, st.text(max_size=3)) | st.builds(UserMessage, st.text(max_size=3)), max_size=6
)


@settings(deadline=None)
@given(KEYED, KEYED)
def test_keys_are_equal_only_for_equal_conversations(one: list[AskMessage], other: list[AskMessage]) -> None:
    def trimmed(messages: list[AskMessage], at: int) -> list[tuple[type, str]]:
        return [(type(m), m.text.strip() if isinstance(m, AssistantMessage) else m.text) for m in messages[: at + 1]]

    found = [(key, trimmed(list_, at)) for list_ in (one, other) for at, key in answer_keys("", (), list_)]
    for key, messages in found:
        assert all((key == other_key) == (messages == rest) for other_key, rest in found)
