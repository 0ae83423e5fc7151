"""Whole answers: which may be written, by choice and style."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.core.errors import PromptError
from app.prompt.ask import Ask, Choice, Form, JsonFormat, Tool, UserMessage
from app.prompt.grammar.constraint import constraint
from app.prompt.grammar.style import CallStyle, ThinkState
from tests.prompt.grammar.words import FULL, PLAIN, WORDS, SmallTokenizer, fits, matcher

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "mode": {"type": "string", "enum": ["r", "w x"]},
        "line": {"type": ["integer", "null"]},
        "code": {"type": "string", "pattern": r"^[a-z]+\d$", "maxLength": 4},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}
TOOLS = (Tool("read", "", SCHEMA), Tool("read_all", "", {}), Tool("now", "", {"type": "object", "properties": {}}))


def call(style: CallStyle, name: str, **arguments: object) -> str:
    if style is CallStyle.JSON:
        return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'
    texts = {key: each if isinstance(each, str) else json.dumps(each) for key, each in arguments.items()}
    blocks = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts.items())
    return f"<tool_call>\n<function={name}>\n{blocks}</function>\n</tool_call>"


REQUIRED = Form(Choice.REQUIRED)
NAMED = Form(Choice.REQUIRED, named="now")
ALLOWED = Form(allowed=("now", "read_all"))
ONE = Form(parallel=False)
TWO = Form(most_calls=2)
VALUE = Form(format=JsonFormat({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}))
OBJECT = Form(format=JsonFormat())
# In each answer N, A and R stand for calls of now, read_all and read.
CHOICES: dict[str, tuple[Form, list[str], list[str]]] = {
    "auto": (Form(), ["", "Hi", "Hi\n\nN", "N", "N\nR", "NN\n", "Hi N\n"], ["Hi N bye", "N\nHi"]),
    "required": (REQUIRED, ["N", "\n\nN", "R\nA"], ["", "Hi", "Hi N", "\n" * 9 + "N"]),
    "named": (NAMED, ["N", "\nN\n"], ["", "A", "N\nN", "Hi"]),
    "named alone": (Form(named="now"), ["N"], ["", "A", "Hi"]),
    "allowed": (ALLOWED, ["Hi", "N\nA"], ["R", "N\nR"]),
    "one": (ONE, ["Hi", "N"], ["N\nN"]),
    "at most two": (TWO, ["N\nN"], ["N\nN\nN"]),
    "at most sixteen": (Form(), ["N" * 16], ["N" * 17]),
    "value or call": (VALUE, ['{"a": 1}', '\n\n{"a": 1}\n', "N\nN"], ["", "Hi", '{"a": 1}N', 'N{"a": 1}', "{}"]),
    "object or call": (OBJECT, ["{}", '{"b": [1, {"c": null}]}', "N"], ["[]", "Hi", "{} {}"]),
}


def spelled(text: str, style: CallStyle) -> str:
    calls = {"N": call(style, "now"), "A": call(style, "read_all"), "R": call(style, "read", path="x")}
    return "".join(calls.get(char, char) for char in text)


@pytest.mark.parametrize("tokenizer", [FULL, PLAIN], ids=["tags are tokens", "tags are letters"])
@pytest.mark.parametrize("style", CallStyle)
@pytest.mark.parametrize("name", CHOICES)
def test_choices(name: str, style: CallStyle, tokenizer: SmallTokenizer) -> None:
    form, allowed, others = CHOICES[name]
    found = matcher(*TOOLS, form=form, style=style, tokenizer=tokenizer)
    assert [text for text in allowed if not fits(found, spelled(text, style), tokenizer)] == []
    assert [text for text in others if fits(found, spelled(text, style), tokenizer)] == []


@pytest.mark.parametrize("tokenizer", [FULL, PLAIN], ids=["tags are tokens", "tags are letters"])
@pytest.mark.parametrize("style", CallStyle)
def test_thinking(style: CallStyle, tokenizer: SmallTokenizer) -> None:
    now = call(style, "now")
    one = {think: matcher(*TOOLS, form=REQUIRED, style=style, think=think, tokenizer=tokenizer) for think in ThinkState}
    for think, text, right in [
        (ThinkState.OPEN, f"Hm <x>\n</think>\n\n{now}", True),
        (ThinkState.OPEN, f"</think>{now}", True),
        (ThinkState.OPEN, now, False),
        (ThinkState.OPEN, "Hm", False),
        (ThinkState.MAY, f"<think>\nHm\n</think>\n\n{now}", True),
        (ThinkState.MAY, now, True),
        (ThinkState.MAY, f"<think>Hm{now}", False),
        (ThinkState.NEVER, now, True),
        (ThinkState.NEVER, f"<think>\n</think>{now}", False),
    ]:
        assert fits(one[think], text, tokenizer) is right, (think, text)


JSON_CALLS = {
    '{"name": "read", "arguments": {"path": "a", "line": null}}': True,
    '{"name": "read", "arguments": {\n  "path": "a",\n  "tags": ["x"]\n}}': True,
    '{"name": "read", "arguments": {"path": "a", "code": "ab1"}}': True,
    '{"name": "read_all", "arguments": {"any": [1, {"x": null}]}}': True,
    '{"name": "read", "arguments": {}}': False,
    '{"name": "read", "arguments": {"path": 1}}': False,
    '{"name": "read", "arguments": {"path": "a", "mode": "w"}}': False,
    '{"name": "read", "arguments": {"path": "a", "code": "abcd1"}}': False,
    '{"name": "write", "arguments": {}}': False,
    '{"arguments": {}, "name": "now"}': False,
    '{"name": "now", "arguments": []}': False,
    '{"name": "now"}': False,
}


@pytest.mark.parametrize("body", JSON_CALLS)
def test_json_calls(body: str) -> None:
    assert fits(matcher(*TOOLS), f"<tool_call>\n{body}\n</tool_call>") is JSON_CALLS[body]


XML_CALLS: list[tuple[str, dict[str, object], bool]] = [
    ("read", {"path": "a\nb </parameter c\n\n"}, True),
    ("read", {"path": ""}, True),
    ("read", {"path": '"quoted" é 🦦', "mode": "w x", "line": 12, "code": "ab1", "tags": ["x", "y"]}, True),
    ("read", {"path": "a", "line": None}, True),
    ("read_all", {}, True),
    ("read", {}, False),
    ("read", {"line": 1, "path": "a"}, False),
    ("read", {"path": "a", "mode": "w"}, False),
    ("read", {"path": "a", "mode": '"r"'}, False),
    ("read", {"path": "a", "line": "x"}, False),
    ("read", {"path": "a", "code": "abcd1"}, False),
    ("read", {"path": "a", "tags": "x"}, False),
    ("read", {"path": "a\n</parameter>\nb"}, False),
    ("read", {"path": "a", "other": "b"}, False),
    ("read_all", {"other": "b"}, False),
]


@pytest.mark.parametrize(("name", "arguments", "right"), XML_CALLS)
def test_xml_calls(name: str, arguments: dict[str, object], right: bool) -> None:
    assert fits(matcher(*TOOLS, style=CallStyle.XML), call(CallStyle.XML, name, **arguments)) is right


PICK: dict[str, Any] = {
    "anyOf": [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"$ref": "#/$defs/b"},
    ],
    "$defs": {
        "b": {"properties": {"b": {"$ref": "#/$defs/color"}}, "required": ["b"]},
        "color": {"enum": ["red", "blue"]},
    },
}
MORE: dict[str, Any] = {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "arguments", "right"),
    [
        (PICK, {"a": "x"}, True),
        (PICK, {"b": "blue"}, True),
        (PICK, {"b": "green"}, False),
        (PICK, {}, False),
        (MORE, {"a": "x", "n": 1, "m": 2}, True),
        (MORE, {"n": 1}, True),
        (MORE, {"n": "x"}, False),
        (MORE, {"n": 1, "a": "x"}, False),
    ],
)
def test_xml_calls_of_richer_schemas(schema: dict[str, Any], arguments: dict[str, object], right: bool) -> None:
    found = matcher(Tool("t", "", schema), style=CallStyle.XML)
    assert fits(found, call(CallStyle.XML, "t", **arguments)) is right


@pytest.mark.parametrize(
    ("tools", "form"),
    [
        ([Tool("a b")], Form()),
        ([Tool("")], Form()),
        ([Tool("a" * 129)], Form()),
        ([Tool("a"), Tool("a")], Form()),
        ([Tool(f"t{n}") for n in range(1_025)], Form()),
        ([Tool("a")], Form(named="b")),
        ([Tool("a")], Form(allowed=("b",))),
        ([Tool("a")], Form(Choice.REQUIRED, allowed=())),
        ([Tool("a", "", {"type": "array"})], Form()),
    ],
)
def test_tools_that_cannot_be_offered(tools: list[Tool], form: Form) -> None:
    with pytest.raises(PromptError):
        matcher(*tools, form=form)


@pytest.mark.parametrize("name", ["a>b", "a\nb", "", "a" * 129])
def test_names_of_xml_parameters(name: str) -> None:
    tool = Tool("t", "", {"properties": {name: {}}})
    matcher(tool)
    with pytest.raises(PromptError, match='"t" has a parameter whose name'):
        matcher(tool, style=CallStyle.XML)


def test_all_schemas_together_are_bounded() -> None:
    tools = [Tool(f"t{n}", "", {"properties": {f"p{k}": {} for k in range(200)}}) for n in range(60)]
    with pytest.raises(PromptError, match="10000"):
        matcher(*tools)


@pytest.mark.parametrize("tools", [(), TOOLS])
def test_free_answers_have_no_matcher(tools: tuple[Tool, ...]) -> None:
    ask = Ask((UserMessage("hi"),), tools=tools, form=Form(Choice.NONE))
    assert constraint(WORDS[FULL], ask, CallStyle.JSON, ThinkState.MAY) is None


def test_a_format_holds_without_calls() -> None:
    found = matcher(*TOOLS, form=Form(Choice.NONE, format=JsonFormat()))
    assert fits(found, "{}")
    assert not fits(found, call(CallStyle.JSON, "now"))
