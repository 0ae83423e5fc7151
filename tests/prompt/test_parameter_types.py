"""What a parameter's text means by its schema."""

from __future__ import annotations

import json

import pytest

from app.prompt.parameter_types import TYPES, allowed

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "mode": {"enum": ["on", "off"]},
        "level": {"enum": ["auto", 3]},
        "fixed": {"const": "x"},
        "far": {"$ref": "#/$defs/a~1b"},
        "round": {"$ref": "#/properties/round"},
        "lost": {"$ref": "https://example.org/x"},
        "narrow": {"type": ["string", "integer"], "allOf": [{"type": "integer"}]},
        "any": {},
        "true": True,
    },
    "allOf": [{"properties": {"inner": {"type": "string"}}}],
    "$defs": {"a/b": {"type": "string"}},
    "additionalProperties": {"type": "string"},
}
ONLY_TEXT = ["text", "mode", "fixed", "far", "inner", "undeclared"]


@pytest.mark.parametrize("key", [*SCHEMA["properties"], "inner", "undeclared"])
def test_only_texts_are_streamed(key: str) -> None:
    assert allowed(SCHEMA, key).text_only == (key in ONLY_TEXT)


CASES = [
    ("count", " 5\n", "5"),
    ("count", "5 apples", '"5 apples"'),
    ("ratio", "2", "2"),
    ("ratio", "1e400", "1e400"),
    ("maybe", "null", "null"),
    ("maybe", "None", "null"),
    ("maybe", "5", '"5"'),
    ("maybe", '"q"', '"\\"q\\""'),
    ("maybe", " a ", '" a "'),
    ("either", '{"a": 1}', '{"a": 1}'),
    ("either", "[1]", '"[1]"'),
    ("level", "auto", '"auto"'),
    ("level", '"auto"', '"auto"'),
    ("level", "3", "3"),
    ("narrow", "7", "7"),
    ("any", "True", "true"),
    ("any", "so so", '"so so"'),
    ("any", "NaN", '"NaN"'),
    ("any", "", '""'),
    ("lost", "[" * 100_000, f'"{"[" * 100_000}"'),
]


@pytest.mark.parametrize(("key", "text", "meant"), CASES, ids=[f"{key} {text[:9]!r}" for key, text, _ in CASES])
def test_texts_mean_what_the_schema_allows(key: str, text: str, meant: str) -> None:
    assert allowed(SCHEMA, key).as_json(text) == meant
    json.loads(meant)


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"x": 5}}, {"additionalProperties": False}])
def test_a_schema_that_says_nothing_allows_everything(schema: dict[str, object]) -> None:
    assert allowed(schema, "x").types == TYPES


def test_schemas_that_go_round_in_circles_end() -> None:
    wide = {"anyOf": [{"$ref": "#"}] * 60, "allOf": [{"$ref": "#"}] * 60}
    assert allowed(wide, "x").types == TYPES
    inner = {"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}] * 60}}}
    assert allowed(inner, "x").types == TYPES
