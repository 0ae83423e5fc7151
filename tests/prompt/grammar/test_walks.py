"""Whatever a model writes under the masks, the answer ends, can be read, and fits the schema."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema
import numpy as np
import pytest

from app.prompt.ask import Choice, Form, JsonFormat, Tool
from app.prompt.grammar.compiling import prepared
from app.prompt.grammar.matcher import Matcher
from app.prompt.grammar.raw_text import read_value
from app.prompt.grammar.style import CallStyle
from tests.prompt.grammar.test_schema import CORPUS
from tests.prompt.grammar.words import FULL, STOPS, matcher

WANDERING = 120
MOST_STEPS = 4_000
ENDINGS = [FULL.encode(text) for text in ("\n</parameter>\n", '"', "</function>\n")]
FILLERS = [FULL.encode(text) for text in ("}", "]", "0", "a1", "1a ", "b")]
SEEDS = range(4)
ARGUMENTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "minLength": 1, "maxLength": 5},
        "code": {"type": "string", "pattern": r"^[a-c]{2}\d$"},
        "color": {"enum": ["red", "dark blue"]},
        "maybe": {"type": ["string", "null"], "enum": ["x", None]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": "integer", "minimum": -5, "maximum": 500},
        "flag": {"type": "boolean"},
        "edits": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#/$defs/edit"}},
    },
    "required": ["text", "color", "code", "edits"],
    "additionalProperties": False,
    "$defs": {
        "edit": {
            "type": "object",
            "properties": {"old": {"type": "string"}, "new": {"type": "string", "maxLength": 9}},
            "required": ["old", "new"],
            "additionalProperties": False,
        }
    },
}


def walk(found: Matcher, chance: random.Random) -> str:
    """Wanders for a while, then heads for the end wherever the mask lets it."""
    ids: list[int] = []
    while not found.done:
        assert len(ids) < MOST_STEPS
        following = step(found, chance, hurry=len(ids) > WANDERING)
        for token in following:
            found.accept(token)
        ids += following
    return FULL.text(ids[:-1])


def step(found: Matcher, chance: random.Random, *, hurry: bool) -> list[int]:
    tokens = np.flatnonzero(np.unpackbits(found.mask().view(np.uint8), bitorder="little")).tolist()
    assert tokens
    ends = [token for token in tokens if token in STOPS.values()]
    if ends and hurry:
        return ends[:1]
    if hurry and (ending := next((each for each in ENDINGS if found.valid(each) == len(each)), None)):
        return ending
    if hurry and (fitting := [each for each in FILLERS if found.valid(each) == len(each)]):
        return chance.choice(fitting)
    return [chance.choice([token for token in tokens if token not in ends] or ends)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [name for name in CORPUS if name != "mail"])
def test_every_value_fits_its_schema(name: str, seed: int) -> None:
    schema = CORPUS[name][0]
    text = walk(matcher(form=Form(format=JsonFormat(schema))), random.Random(seed))
    local = {key: value for key, value in schema.items() if key not in ("$schema", "$id", "uniqueItems")}
    old = isinstance(schema.get("items"), list)
    validator = jsonschema.Draft7Validator if old else jsonschema.Draft202012Validator
    validator(local).validate(json.loads(text))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("style", CallStyle)
def test_every_call_fits_its_tool(style: CallStyle, seed: int) -> None:
    found = matcher(Tool("edit", "", ARGUMENTS), Tool("now"), form=Form(Choice.REQUIRED, most_calls=2), style=style)
    text = walk(found, random.Random(seed))
    calls = re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.S)
    assert 1 <= len(calls) <= 2
    for call in calls:
        name, arguments = read_json(call) if style is CallStyle.JSON else read_xml(call)
        assert name in ("edit", "now")
        if name == "edit":
            jsonschema.Draft202012Validator(ARGUMENTS).validate(arguments)


def read_json(call: str) -> tuple[str, Any]:
    found = json.loads(call)
    assert list(found) == ["name", "arguments"]
    return found["name"], found["arguments"]


def read_xml(call: str) -> tuple[str, Any]:
    head = re.match(r"<function=(\w+)>\n", call)
    assert head is not None
    schema = prepared(ARGUMENTS, "The tool")
    blocks = re.findall(r"<parameter=(\w+)>\n(.*?)\n</parameter>\n", call[head.end() :], re.S)
    nodes = dict(schema.root["properties"])  # type: ignore[index]
    return head[1], {key: read_value(schema, nodes[key], text) for key, text in blocks}


@pytest.mark.parametrize("seed", SEEDS)
def test_any_object_is_read_back(seed: int) -> None:
    text = walk(matcher(form=Form(format=JsonFormat())), random.Random(seed))
    assert isinstance(json.loads(text), dict)
