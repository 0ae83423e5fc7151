"""What a schema allows may be written, what it does not cannot; what cannot be held is refused by name."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from app.core.errors import PromptError
from app.prompt.ask import Form, JsonFormat, Tool
from app.prompt.grammar.budget import Steps
from app.prompt.grammar.compiling import prepared
from app.prompt.grammar.repetition import too_repeated
from app.prompt.grammar.style import CallStyle
from app.prompt.grammar.xml_calls import xml_call
from tests.prompt.grammar.words import matcher, value_fits

LEAF: dict[str, Any] = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
TREE: dict[str, Any] = {"$ref": "#/$defs/n", "$defs": {"n": {**LEAF, "additionalProperties": False}}}
TAGGED: dict[str, Any] = {
    "oneOf": [{"$ref": "#/definitions/Cat"}, {"$ref": "#/definitions/Dog"}],
    "discriminator": {"propertyName": "kind"},
    "definitions": {
        name: {"type": "object", "properties": {"kind": {"const": name}}, "required": ["kind"]}
        for name in ("Cat", "Dog")
    },
}
EITHER: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "additionalProperties": False,
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
}
ZOD_MAIL = {"type": "string", "format": "email", "pattern": r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)@x\.com$"}
ZOD_MAP = {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "number"}}
STRICT: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Weather",
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where"}, "unit": {"type": ["string", "null"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
CORPUS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "strict": (
        STRICT,
        ['{"city": "x", "unit": null}', '{"city":"x","unit":"C"}'],
        ['{"city": "x"}', '{"unit": null, "city": "x"}'],
    ),
    "words of a pattern": ({"type": "string", "pattern": r"\d\w\s"}, ['"--1a --"'], ['"ab "', '"12"']),
    "anchors": ({"type": "string", "pattern": "^a|b$"}, ['"axx"', '"xxb"'], ['"xax"']),
    "lengths": ({"type": "string", "minLength": 2, "maxLength": 3.0}, ['"éé"', r'"a\nb"'], ['"a"', '"abcd"']),
    "bounds": ({"type": "integer", "minimum": 3, "exclusiveMaximum": 12}, ["3", "11"], ["2", "12", "3.5"]),
    "multiples": ({"type": "number", "multipleOf": 0.5}, ["2", "2.5"], ["2.3"]),
    "enum of kinds": ({"enum": ["a", 1, None, True]}, ['"a"', "1", "null", "true"], ['"b"', "2", "false"]),
    "nullable": ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, ['"x"', "null"], ["1"]),
    "recursive in items": (TREE, ['{"kids": [{"kids": []}, {}]}'], ['{"kids": [1]}', '{"kids": [{"kid": []}]}']),
    "reference to the root": ({"type": "array", "items": {"$ref": "#"}}, ["[[], [[]]]"], ["[1]"]),
    "tagged union": (TAGGED, ['{"kind": "Cat"}', '{"kind": "Dog"}'], ['{"kind": "Cow"}', "{}"]),
    "exactly one of two": (EITHER, ['{"a": 1}', '{"b": 1}'], ["{}", '{"a": 1, "b": 1}']),
    "old tuple": (
        {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
        ['["a"]'],
        ["[1]", '["a", 1]'],
    ),
    "tuple": ({"type": "array", "prefixItems": [{"type": "null"}], "items": False, "minItems": 1}, ["[null]"], ["[]"]),
    "unique enum": ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, ["[1, 2]"], ["[1, 2, 1]"]),
    "map": (ZOD_MAP, ['{"a": 1.5}', "{}"], ['{"a": "x"}']),
    "mail": (ZOD_MAIL, ['"a@x.com"'], ['".a@x.com"', '"a"']),
    "known format": ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2024-02-30"']),
    "unknown format": ({"type": "string", "format": "color"}, ['"red"'], ["1"]),
    "annotations": (
        {"type": "null", "x-a": 1, "markdownDescription": "x", "$id": "http://a/b", "nullable": True},
        ["null"],
        ["1"],
    ),
    "never": ({"type": "object", "properties": {"a": {"not": {}}}}, ['{"b": 1}'], ['{"a": 1}']),
    "all of": (
        {"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}, {"required": ["b"]}]},
        ['{"a": null, "b": 1}'],
        ['{"a": null}'],
    ),
    "anchor": ({"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}}, ["null"], ["1"]),
    "own options of the library": ({"type": "array", "x-guidance": {"whitespace_flexible": True}}, ["[]"], ["[   ]"]),
    "white space": (
        {"type": "array", "items": {"type": "integer"}},
        ["[1, 2]", "[\n    1,\n    2\n]", "[\n\t1\n]"],
        ["[1,  2]", "[\n\n1]", "[" + "\n" + " " * 40 + "1]"],
    ),
}


@pytest.mark.parametrize("name", CORPUS)
def test_a_schema_holds_an_answer(name: str) -> None:
    schema, allowed, others = CORPUS[name]
    assert [text for text in allowed if not value_fits(schema, text)] == []
    assert [text for text in others if value_fits(schema, text)] == []


def deep(levels: int) -> dict[str, Any]:
    return {"type": "array", "items": deep(levels - 1)} if levels else {"type": "null"}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "not": ({"not": {"type": "string"}}, '"not"'),
    "if": ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, '"if"'),
    "contains": ({"type": "array", "contains": {"const": 1}}, '"contains"'),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, '"dependentRequired"'),
    "names": ({"propertyNames": {"pattern": "^a"}}, '"propertyNames"'),
    "unevaluated": ({"allOf": [{}], "unevaluatedProperties": False}, '"unevaluatedProperties"'),
    "overlapping oneOf": ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, '"oneOf"'),
    "look-ahead": ({"type": "string", "pattern": "(?=a)b"}, '"pattern"'),
    "back reference": ({"type": "string", "pattern": r"(a)\1"}, '"pattern"'),
    "broken pattern": ({"type": "string", "pattern": "["}, '"pattern"'),
    "countless properties": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 2},
        '"minProperties"',
    ),
    "far reference": ({"$ref": "http://example.com/x"}, r'"\$ref"'),
    "file reference": ({"$ref": "file:///etc/passwd"}, r'"\$ref"'),
    "missing reference": ({"$ref": "#/$defs/x"}, r'"\$ref"'),
    "reference to itself": ({"$ref": "#"}, r'"\$ref"'),
    "unknown type": ({"type": "str"}, '"type"'),
    "no value": ({"enum": []}, '"enum"'),
    "no finite value": ({"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]}, "no finite value"),
    "empty range": ({"type": "integer", "minimum": 3, "maximum": 2}, '"minimum"'),
    "long": ({"description": "x" * 40_000}, "32000 characters"),
    "many values": ({"enum": list(range(1_001))}, '1000 values in "enum"'),
    "many options": ({"anyOf": [{"const": n} for n in range(65)]}, '64 schemas in "anyOf"'),
    "many parts": ({"allOf": [{} for _ in range(17)]}, '16 schemas in "allOf"'),
    "deep": (deep(40), "deeper than 32"),
    "a number that is none": ({"type": "number", "minimum": float("nan")}, "no JSON"),
    "a schema that is none": ({"properties": {"a": 3}}, "no schema"),
    "lengths that are none": ({"minLength": -1}, '"minLength"'),
    "counts within counts": ({"type": "string", "pattern": "^(a{1,1000}){1,1000}$"}, '"pattern".* 2000'),
    "counts within the names": (
        {"type": "object", "patternProperties": {"^(a?){2001}$": {}}},
        '"patternProperties".* 2000',
    ),
    "properties that are none": ({"properties": []}, '"properties"'),
}


@pytest.mark.parametrize("style", CallStyle)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_held_is_refused_by_name(name: str, style: CallStyle) -> None:
    schema, word = REFUSED[name]
    tool = Tool("search", "", {"type": "object", "properties": {"q": schema}, "required": ["q"]})
    if schema.get("$ref") == "#" or "$ref" in str(schema.get("properties")):
        tool = Tool(
            "search", "", {"type": "object", "properties": {"q": {"$ref": "#/properties/q"}}, "required": ["q"]}
        )
        word = r'"\$ref"'
    with pytest.raises(PromptError, match=rf'The tool "search" .*{word}'):
        matcher(tool, style=style)
    with pytest.raises(PromptError, match="The response format"):
        matcher(form=Form(format=JsonFormat(schema)))


def test_the_place_is_told() -> None:
    tool = Tool("search", "", {"properties": {"a": {"items": {"type": "string", "pattern": "(x"}}}})
    with pytest.raises(PromptError, match=r"at /properties/a/items"):
        matcher(tool)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def multiplied(word: str, many: int, levels: int, leaf: Any) -> dict[str, Any]:
    """Definitions that each refer to the next one so often; a0 is the first."""
    steps = {f"a{n}": {word: [{"$ref": f"#/$defs/a{n + 1}"}] * many} for n in range(levels)}
    return {**steps, f"a{levels}": leaf}


A0 = {"$ref": "#/$defs/a0"}
TEXT = {"type": "string", "maxLength": 3}


def test_alternatives_that_multiply_are_read_once() -> None:
    defs = multiplied("anyOf", 64, 6, TEXT)
    schema = {"type": "object", "$defs": defs, "properties": {"p": {"oneOf": [A0, {"type": "integer"}]}}}
    steps = Steps(5_000)
    exclusive = prepared(schema, "The tool", steps)
    plain = prepared({"type": "object", "$defs": defs, "properties": {"p": A0}}, "The tool", steps)
    assert xml_call("t", "f", exclusive)
    assert sum(line.count("maxLength") + line.count("{0,3}") for line in xml_call("t", "f", plain)) == 1


MULTIPLIED: dict[str, dict[str, Any]] = {
    "parts": {"$defs": multiplied("allOf", 16, 6, {"type": "object"}), "allOf": [A0]},
    "alternatives": {"$defs": multiplied("anyOf", 64, 5, False), "anyOf": [A0, {}]},
    "a circle": {"anyOf": [{"$ref": "#"}, {}]},
    "values": {
        "$defs": {"e": {"enum": [str(n) for n in range(1_000)]}},
        "properties": {f"p{n}": {"$ref": "#/$defs/e"} for n in range(500)},
    },
}


@pytest.mark.parametrize("name", MULTIPLIED)
def test_work_that_multiplies_is_refused_by_name(name: str) -> None:
    with pytest.raises(PromptError, match='The tool "search" has'):
        matcher(Tool("search", "", {"type": "object", **MULTIPLIED[name]}), style=CallStyle.XML)


def test_a_long_text_without_quotes_is_refused_by_name() -> None:
    tool = Tool("search", "", {"properties": {"q": {"type": "string", "maxLength": 5_000}}})
    with pytest.raises(PromptError, match=r'The tool "search" .*"maxLength".* 4000'):
        matcher(tool, style=CallStyle.XML)
    assert matcher(tool).mask().any()


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("^(a{1,44}){1,44}$", False),
        ("^(a{1,50}){1,50}$", True),
        ("^[a-z]{1,100000}$", False),
        ("^(?:ab|c){1,5000}$", False),
        (r"^(\w{1,63}\.){1,20}\w{2,63}$", False),
        ("((a{1,900}){1,900}){1,900}", True),
        ("(a?){3000}", True),
        ("(a{60}b){60,}", True),
        (r"(a\{60}b[{1}]){3000}", False),
        ("a{2}{2000}", True),
        ("a)){1,5000}", False),
        ("(a{1,99999999999}){2}", False),
    ],
)
def test_counts_within_counts(pattern: str, wrong: bool) -> None:
    assert too_repeated(pattern) is wrong


WIDE = {"anyOf": [{"allOf": [{"$ref": "#/$defs/b"}] * 16}] * 64}
HOSTILE: dict[str, dict[str, Any]] = {
    "endless nesting": nested(50_000),
    "references that multiply": {"$ref": "#/$defs/a", "$defs": {"a": WIDE, "b": WIDE}},
    "a thousand references up": {"properties": {f"p{n}": {"$ref": "#"} for n in range(1_000)}},
    "a heavy pattern": {"type": "string", "pattern": "((a{1,900}){1,900}){1,900}"},
    "unions within unions": {"anyOf": [{"anyOf": [{"anyOf": [{"type": "object"}] * 20}] * 20}] * 20},
    "endless text": {"type": "string", "minLength": 10**15},
    "endless list": {"type": "array", "minItems": 10**15},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_end_in_a_matcher_or_a_refusal(name: str) -> None:
    with contextlib.suppress(PromptError):
        assert matcher(form=Form(format=JsonFormat(HOSTILE[name]))).mask().any()
