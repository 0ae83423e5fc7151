"""Values of XML parameters: text is written as it is, everything else as JSON (spec: A-069)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.prompt.grammar.budget import refuse
from app.prompt.grammar.exclusive import values_of
from app.prompt.grammar.pattern import whole
from app.prompt.grammar.schema import Node, Schema, as_list

ANY_TEXT = "/(?s:.*)/"
CLOSING = r"\n<\/parameter>"
MOST_LENGTH = 4_000
"""The grammar library loses count of a longer text while it is written, for it looks for the closing tag as well."""
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
    schema.step(len(options))
    kinds = {kind for kind, _ in options}
    words = frozenset(word for kind in kinds for word in _WORDS.get(kind, ()))
    terms = tuple(dict.fromkeys(_term(schema, option) for kind, option in options if kind == "string"))
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


def _options(schema: Schema, node: Node) -> Iterator[tuple[str, Mapping[str, object]]]:
    """One type and its words at a time. Alternatives that are shared come once, however many lead to them."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = schema.at(waiting.pop())
        if id(node) in seen:
            continue
        seen.add(id(node))
        schema.step()
        if isinstance(node, Mapping) and _only_joins(node):
            waiting += reversed(as_list(node.get("anyOf", node.get("allOf"))))
        else:
            yield from _kinds(node)


def _only_joins(node: Mapping[str, object]) -> bool:
    return len(node) == 1 and ("anyOf" in node or len(as_list(node.get("allOf"))) == 1)


def _kinds(node: Node) -> Iterator[tuple[str, Mapping[str, object]]]:
    """What cannot be taken apart is of the type "mixed"."""
    if isinstance(node, bool) or not node:
        yield "string", {}
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
        _check_length(schema, node)
        yield f"/(?s:.{{{node.get('minLength', 0)},{node.get('maxLength', '')}}})/"
    if isinstance(pattern := node.get("pattern"), str):
        held = whole(pattern)
        if held is None:
            refuse(schema.owner, f'has an anchor inside "pattern" {pattern[:100]}, which raw text cannot be held to')
        yield held


def _check_length(schema: Schema, node: Mapping[str, object]) -> None:
    longest = max(int(str(node.get(word, 0))) for word in ("minLength", "maxLength"))
    if longest > MOST_LENGTH:
        word = "maxLength" if "maxLength" in node else "minLength"
        refuse(schema.owner, f'has a "{word}" of more than {MOST_LENGTH}, which raw text cannot be held to')
