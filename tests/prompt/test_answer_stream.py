"""Answers come apart into reasoning, words and calls, however their tokens are cut."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.tokenizer import GgufTokenizer
from app.prompt.answer_stream import AnswerStream
from app.prompt.ask import AssistantMessage, Call, Tool
from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Piece, Reasoning, Words
from tests.prompt.chunks import CHAT_ONLY, SPECIALS, TAGS, ChunkTokenizer, chat_ml
from tests.prompt.templates import real

PARAMETERS = {
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer"},
        "deep": {"$ref": "#/$defs/deep"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "mode": {"enum": ["r", "w", 7]},
    },
    "$defs": {"deep": {"type": "object"}},
}
TOOLS = (Tool("read", "", PARAMETERS), Tool("now"))


@dataclass
class Heard:
    """What all pieces of an answer say together."""

    reasoning: str = ""
    words: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    ended: list[int] = field(default_factory=list[int])

    def take(self, piece: Piece) -> None:
        match piece:
            case Reasoning():
                self.reasoning += piece.text
            case Words():
                self.words += piece.text
            case CallBegun():
                assert piece.index == len(self.calls)
                self.calls[piece.index] = [piece.name, ""]
            case CallArguments():
                assert piece.index not in self.ended
                self.calls[piece.index][1] += piece.text
            case CallEnded():
                self.ended.append(piece.index)


def hear(stream: AnswerStream, ids: list[int]) -> Heard:
    heard = Heard()
    for piece in (piece for token in ids for piece in stream.add(token)):
        assert not isinstance(piece, (Reasoning, Words, CallArguments)) or piece.text
        heard.take(piece)
    for piece in stream.end():
        heard.take(piece)
    return heard


def read(
    text: str, cuts: tuple[int, ...] = (), *, tags: bool = True, opened: bool = False, constrained: bool = True
) -> tuple[Heard, AnswerStream]:
    language = chat_ml(SPECIALS if tags else CHAT_ONLY)
    assert isinstance(language.tokenizer, ChunkTokenizer)
    ids = language.tokenizer.spell(text, cuts)
    stream = AnswerStream(language, TOOLS, opened=opened, constrained=constrained)
    return hear(stream, ids), stream


def json_call(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


def xml_call(name: str, **values: str) -> str:
    blocks = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function={name}>\n{blocks}</function>\n</tool_call>"


NOW = json_call('{"name": "now", "arguments": {}}')
# text, reasoning, words, calls as (name, arguments text)
CORPUS: dict[str, tuple[str, str, str, list[tuple[str, str]]]] = {
    "words": ("Grüße, 🦦!", "", "Grüße, 🦦!", []),
    "end of turn": ("Hi.<|im_end|>", "", "Hi.", []),
    "thought": ("<think>\nWell, 🦦.\n</think>\n\nHi.", "Well, 🦦.", "Hi.", []),
    "empty thought": ("<think>\n\n</think>\n\nHi.", "", "Hi.", []),
    "inner lines stay": ("a\n\n  b \nc", "", "a\n\n  b \nc", []),
    "angle brackets": ("1 < 2, <b>x</b>, <tool_box>, </thin", "", "1 < 2, <b>x</b>, <tool_box>, </thin", []),
    "closing tag alone": ("Hi</think> you</tool_call>.", "", "Hi you.", []),
    "results are never words": ("A<tool_response>B</tool_response>", "", "AB", []),
    "json": (NOW, "", "", [("now", "{}")]),
    "json in one line": ('<tool_call>{"name":"now","arguments":{}}</tool_call>', "", "", [("now", "{}")]),
    "json, as it was written": (
        json_call('{"name": "read", "arguments": {"path" :"a\\n\\"}é",\n "lines":[1, {"x": 2.50}]}}'),
        "",
        "",
        [("read", '{"path" :"a\\n\\"}é",\n "lines":[1, {"x": 2.50}]}')],
    ),
    "json, arguments first": (
        json_call('{"arguments": {"path": "x"}, "name": "read"}'),
        "",
        "",
        [("read", '{"path": "x"}')],
    ),
    "json, more keys": (
        json_call('{"id": 1.5, "name": "now", "arguments": {}, "type": "function"}'),
        "",
        "",
        [("now", "{}")],
    ),
    "json, no arguments": (json_call('{"name": "now"}'), "", "", [("now", "{}")]),
    "json, arguments in a string": (
        json_call('{"name": "read", "arguments": "{\\"path\\": \\"x\\"}"}'),
        "",
        "",
        [("read", '{"path": "x"}')],
    ),
    "json, a bare line break": (
        json_call('{"name": "read", "arguments": {"path": "a\nb"}}'),
        "",
        "",
        [("read", '{"path": "a\\nb"}')],
    ),
    "json, tags in a string": (
        json_call('{"name": "read", "arguments": {"path": "<think></think>"}}'),
        "",
        "",
        [("read", '{"path": "<think></think>"}')],
    ),
    "xml": (xml_call("read", path="a.txt", lines="3"), "", "", [("read", '{"path": "a.txt", "lines": 3}')]),
    "xml, none": (xml_call("now"), "", "", [("now", "{}")]),
    "xml, text of lines": (
        xml_call("read", path='\n "a"\n\n</parameter> <b>🦦\n'),
        "",
        "",
        [("read", '{"path": "\\n \\"a\\"\\n\\n</parameter> <b>🦦\\n"}')],
    ),
    "xml, tags in a text": (
        xml_call("read", path="<think>x</think>"),
        "",
        "",
        [("read", '{"path": "<think>x</think>"}')],
    ),
    "xml, empty text": (
        "<tool_call><function=read><parameter=path>\n</parameter>\n</function></tool_call>",
        "",
        "",
        [("read", '{"path": ""}')],
    ),
    "xml in one line": (
        "<tool_call><function=read><parameter=lines>5</parameter><parameter=path>x</parameter></function></tool_call>",
        "",
        "",
        [("read", '{"lines": 5, "path": "x"}')],
    ),
    "xml, types": (
        xml_call("read", deep='{"a": [1]}', maybe="null", mode="w"),
        "",
        "",
        [("read", '{"deep": {"a": [1]}, "maybe": null, "mode": "w"}')],
    ),
    "xml, a text that looks like a number": (xml_call("read", maybe="5"), "", "", [("read", '{"maybe": "5"}')]),
    "xml, an undeclared parameter": (
        xml_call("read", other="[1]", more="so so"),
        "",
        "",
        [("read", '{"other": [1], "more": "so so"}')],
    ),
    "xml, no number where one should be": (xml_call("read", lines="many"), "", "", [("read", '{"lines": "many"}')]),
    "xml, a word of Python": (xml_call("read", lines="None"), "", "", [("read", '{"lines": null}')]),
    "words before a call": (f"Let me look.\n\n{NOW}", "", "Let me look.", [("now", "{}")]),
    "thought, words, call": (f"<think>\nT\n</think>\n\nSo:\n{xml_call('now')}<|im_end|>", "T", "So:", [("now", "{}")]),
    "calls with lines between": (f"{NOW}\n{NOW}\n", "", "", [("now", "{}"), ("now", "{}")]),
    "calls with semicolons between": (f"Hm: {NOW}; {NOW}; ", "", "Hm:", [("now", "{}"), ("now", "{}")]),
    "words after a call": (f"{NOW}\n\nDone.", "", "Done.", [("now", "{}")]),
    "a call that nothing closes": (NOW.removesuffix("</tool_call>"), "", "", [("now", "{}")]),
    "a call closed by the next": (NOW.removesuffix("</tool_call>") + NOW, "", "", [("now", "{}"), ("now", "{}")]),
    "broken json": (f"So: {json_call('{name: now}')}", "", "So: {name: now}", []),
    "an undeclared tool": (json_call('{"name": "rm", "arguments": {}}'), "", '{"name": "rm", "arguments": {}}', []),
    "an undeclared function": (xml_call("rm"), "", "<function=rm>\n</function>", []),
    "no call at all": (f"{json_call('[1, 2]')} {NOW}", "", "[1, 2]", [("now", "{}")]),
    "nothing between the tags": (json_call(""), "", "", []),
    "two calls in thoughts": (f"<think>{NOW}</think>Hi", '{"name": "now", "arguments": {}}', "Hi", []),
}
WAYS = [
    pytest.param(tags, constrained, id=f"{tags=}-{constrained=}")
    for tags in (True, False)
    for constrained in (True, False)
]


def check(name: str, heard: Heard, stream: AnswerStream) -> None:
    _, reasoning, words, calls = CORPUS[name]
    assert (heard.reasoning, heard.words) == (reasoning, words)
    assert [tuple(call) for call in heard.calls.values()] == calls
    assert heard.ended == list(range(len(calls)))
    assert stream.calls == tuple(Call(tool, json.loads(text)) for tool, text in calls)
    assert stream.answer == AssistantMessage(words, stream.calls, reasoning)
    assert not stream.in_reasoning
    assert stream.open_call is None


@pytest.mark.parametrize(("tags", "constrained"), WAYS)
@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("cuts", [(), (7,), (10_000,)], ids=["bytes", "sevens", "whole"])
def test_answers_come_apart(name: str, tags: bool, constrained: bool, cuts: tuple[int, ...]) -> None:
    check(name, *read(CORPUS[name][0], cuts, tags=tags, constrained=constrained))


@settings(deadline=None)
@given(st.sampled_from(sorted(CORPUS)), st.lists(st.integers(1, 9), min_size=1, max_size=12), st.booleans())
def test_any_cutting_says_the_same(name: str, cuts: list[int], tags: bool) -> None:
    check(name, *read(CORPUS[name][0], tuple(cuts), tags=tags))


@pytest.mark.parametrize("name", CORPUS)
def test_a_whole_models_own_tokens(name: str) -> None:
    tokenizer = real().tokenizer
    assert isinstance(tokenizer, GgufTokenizer)
    stream = AnswerStream(real(), TOOLS, opened=False)
    check(name, hear(stream, tokenizer.encode_with_specials(CORPUS[name][0])), stream)


def test_a_block_opened_by_the_prompt_is_reasoning() -> None:
    heard, stream = read("Hm.\n</think>\n\nHi", opened=True)
    assert (heard.reasoning, heard.words, stream.reasoning_tokens) == ("Hm.", "Hi", len("Hm.\n"))


def test_an_answer_cut_in_its_reasoning_says_so() -> None:
    heard, stream = read("Hm, ", opened=True)
    assert (heard.reasoning, heard.words, stream.in_reasoning, stream.answer) == ("Hm,", "", True, None)


def test_a_cut_call_stays_open() -> None:
    heard, stream = read('Well. <tool_call>\n{"name": "read", "arguments": {"path": "a')
    assert heard.calls == {0: ["read", '{"path": "a']}
    assert (heard.words, heard.ended, stream.open_call, stream.answer) == ("Well.", [], (0, "read"), None)


def test_a_call_cut_before_its_name_says_nothing() -> None:
    heard, stream = read('Well. <tool_call>\n{"na')
    assert (heard.words, heard.calls, stream.open_call, stream.answer) == ("Well.", {}, None, None)


def test_a_cut_call_without_a_grammar_is_words() -> None:
    heard, stream = read('<tool_call>\n{"name": "now", "argu', constrained=False)
    assert (heard.words, heard.calls) == ('{"name": "now", "argu', {})
    assert stream.answer == AssistantMessage('{"name": "now", "argu')


def test_a_call_that_breaks_after_its_name_never_ends() -> None:
    heard, stream = read(json_call('{"name": "read", "arguments": {"path": nonsense}}'))
    assert (heard.ended, stream.calls, stream.open_call) == ([], (), (0, "read"))
    assert heard.words.startswith('{"name": "read"')


def test_without_a_grammar_a_broken_call_leaves_no_trace() -> None:
    text = '{"name": "read", "arguments": {"path": nonsense}}'
    heard, stream = read(json_call(text), constrained=False)
    assert (heard.calls, heard.words, stream.open_call) == ({}, text, None)


@pytest.mark.parametrize("arguments", ['{"path": NaN}', "[" * 100_000, '{"a": 1', "7", '"x"', "null"])
def test_arguments_are_json_objects(arguments: str) -> None:
    heard, stream = read(json_call(f'{{"name": "read", "arguments": {arguments}}}'), (4_096,), constrained=False)
    assert (heard.calls, stream.calls) == ({}, ())
    assert arguments in heard.words


def test_a_name_shows_once_it_is_whole_and_text_as_it_comes() -> None:
    stream = AnswerStream(language := chat_ml(), TOOLS, opened=False)
    assert isinstance(language.tokenizer, ChunkTokenizer)

    def add(text: str) -> tuple[Piece, ...]:
        return tuple(p for token in language.tokenizer.spell(text, (99,)) for p in stream.add(token))

    assert add("<tool_call>\n<function=re") == ()
    assert add("ad") == ()
    assert add(">\n") == (CallBegun(0, "read"), CallArguments(0, "{"))
    assert add("<parameter=path>\nabc") == (CallArguments(0, '"path": "abc'),)
    assert add("\n</par") == ()
    assert add("is\n") == (CallArguments(0, "\\n</paris"),)
    assert add("\n</parameter>\n</function>") == (CallArguments(0, '\\n"}'),)
    assert add("</tool_call>") == (CallEnded(0),)


@settings(deadline=None)
@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from([*TAGS, "{", '"name": "now"', "<function=read>", "\n"])).map("".join)
)
def test_no_text_raises_or_shows_a_tag(text: str) -> None:
    for tags, constrained in ((True, True), (False, False)):
        heard, _ = read(text, tags=tags, constrained=constrained)
        assert not any(tag in heard.words + heard.reasoning for tag in TAGS)
        for name, arguments in (heard.calls[i] for i in heard.ended):
            assert name in {tool.name for tool in TOOLS}
            assert isinstance(json.loads(arguments), dict)
