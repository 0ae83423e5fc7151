"""Values of XML parameters: text is written as it is, everything else as JSON (spec: A-069)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.prompt.grammar.exclusive import values_of
from app.prompt.grammar.pattern import whole
from app.prompt.grammar.schema import Node, Schema, as_list, refuse

ANY_TEXT = "/(?s:.*)/"
CLOSING = r"\n<\/parameter>"
_WORDS = {"null": ("null",), "boolean": ("true", "false")}


@dataclass(frozen=True)
class Written:
    """How a parameter is written. ``terms``: what a raw text may be, for a grammar; none where JSON is written.

    ``words``: texts that mean null, true or false rather than themselves. ``others``: other types beside free text.
    """

    terms: tuple[str, ...]
    words: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


def written(schema: Schema, node: Node) -> Written:
    """Raises PromptError for a text that its closing tag would cut or whose pattern cannot be held."""
    options = list(_options(schema, node))
    kinds = {kind for kind, _ in options}
    words = frozenset(word for kind in kinds for word in _WORDS.get(kind, ()))
    terms = tuple(_term(schema, option) for kind, option in options if kind == "string")
    others = frozenset(kinds - {"string", "null", "boolean"})
    if ANY_TEXT in terms:
        return Written((ANY_TEXT,), words, others)
    if not terms or others:
        return Written(())
    return Written((*terms, *(json.dumps(word) for word in sorted(words))), words)


def read_value(schema: Schema, node: Node, text: str) -> object:
    """What a parameter's text means. Raises ValueError for text that the grammar does not let through."""
    how = written(schema, node)
    if not how.terms or text in how.words:
        return json.loads(text)
    return _other(text, how.others) if how.others else text


def _other(text: str, types: frozenset[str]) -> object:
    """Free text, unless it is JSON of another type the schema allows."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if _TYPE_NAMES.get(type(value), "") in types else text


_TYPE_NAMES = {int: "number", float: "number", list: "array", dict: "object"}


def _options(schema: Schema, node: Node, level: int = 0) -> Iterator[tuple[str, Mapping[str, object]]]:
    """One type and its words at a time; what cannot be taken apart is of the type "mixed"."""
    node = schema.at(node)
    if isinstance(node, bool) or not node:
        yield "string", {}
    elif node.keys() <= {"anyOf"} or (node.keys() <= {"allOf"} and len(as_list(node["allOf"])) == 1):
        if level > 8:
            yield "mixed", node
            return
        for each in as_list(node.get("anyOf", node.get("allOf"))):
            yield from _options(schema, each, level + 1)
    elif {"anyOf", "allOf", "$ref"} & node.keys():
        yield "mixed", node
    elif (values := values_of(node)) is not None:
        yield from _values(node, values)
    else:
        yield from _types(node)


def _values(node: Mapping[str, object], values: list[object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    types = {name for name, _ in _types(node)}
    for value in values:
        if isinstance(value, str) and "string" in types:
            yield "string", {**node, "const": value}
        elif value is None and "null" in types:
            yield "null", node
        else:
            yield "mixed", node


def _types(node: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    given = node.get("type", ["string", "null", "boolean", "number", "array", "object"])
    for name in given if isinstance(given, list) else [given]:
        yield "number" if name == "integer" else str(name), node


def _term(schema: Schema, node: Mapping[str, object]) -> str:
    limits = list(_limits(schema, node))
    if not limits:
        return ANY_TEXT
    return f"({' & '.join([*limits, ANY_TEXT, f'~/(?s:.*){CLOSING}(?s:.*)/'])})"


def _limits(schema: Schema, node: Mapping[str, object]) -> Iterator[str]:
    if "const" in node:
        text = str(node["const"])
        if "\n</parameter>" in text:
            refuse(schema.owner, 'has a value in "enum" or "const" with a closing parameter line, which ends a value')
        yield json.dumps(text)
    if {"minLength", "maxLength"} & node.keys():
        yield f"/(?s:.{{{node.get('minLength', 0)},{node.get('maxLength', '')}}})/"
    if isinstance(pattern := node.get("pattern"), str):
        held = whole(pattern)
        if held is None:
            refuse(schema.owner, f'has an anchor inside "pattern" {pattern[:100]}, which raw text cannot be held to')
        yield held
