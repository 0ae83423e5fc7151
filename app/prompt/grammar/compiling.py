"""A schema as the text the grammar library compiles, and the place in a schema that it will not compile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from llguidance import LLMatcher

from app.prompt.ask import Json
from app.prompt.grammar.budget import Steps, refuse
from app.prompt.grammar.exclusive import without_one_of
from app.prompt.grammar.finite import check_finite
from app.prompt.grammar.schema import Node, Schema, parts, read_schema

SPACE = r"[ ]|\n[ ]{0,16}|\n\t{0,8}"
"""White space where JSON may have some: one space, or one line break and an indent (spec: A-065)."""

_CAUSES = {
    "regex": "pattern",
    "oneOf": "oneOf",
    "min/maxProperties": "minProperties",
    "multiple": "multipleOf",
    "patternProperties": "patternProperties",
    "pattern property": "patternProperties",
    "integer range": "minimum",
    "float range": "minimum",
    "circular": "$ref",
}


def prepared(raw: Json, owner: str, steps: Steps | None = None) -> Schema:
    """All checks but the compiler's. ``steps``: the bound it shares with others. Raises PromptError."""
    schema = without_one_of(read_schema(raw, owner, steps))
    check_finite(schema)
    return schema


def compile_error(grammar: str) -> str:
    """Why a grammar does not compile, in the library's words; "" if it does."""
    failed, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    return messages[0] if failed else ""


def json_rule(schema: Schema, node: Node) -> str:
    """A rule's body for values that fit ``node``, a part of ``schema``."""
    held: dict[str, object] = dict(node) if isinstance(node, Mapping) else {"allOf": [node]}
    if needed := _needed(schema, node):
        held["$defs"] = {name: schema.shared[name] for name in sorted(needed)}
    return "%json " + json.dumps({**held, "x-guidance": {"whitespace_pattern": SPACE}})


def _needed(schema: Schema, node: Node) -> set[str]:
    """Names of the shared schemas that a part leads to."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        here = waiting.pop()
        waiting += parts(here).values()
        reference = here.get("$ref") if isinstance(here, Mapping) else None
        if isinstance(reference, str) and (name := reference.rpartition("/")[2]) not in found:
            found.add(name)
            waiting.append(schema.shared[name])
    return found


def blame(schema: Schema) -> None:
    """Raises PromptError naming the innermost part that does not compile; returns if all of it does."""
    for top in (schema.root, *schema.shared.values()):
        if why := _error(schema, top):
            _raise(schema, top, why)


def _error(schema: Schema, node: Node) -> str:
    return compile_error("start: " + json_rule(schema, node))


def _raise(schema: Schema, node: Node, why: str) -> NoReturn:
    path = ""
    while found := next(((at, n, w) for at, n in parts(node).items() if n and (w := _error(schema, n))), None):
        path, node, why = f"{path}/{found[0]}", found[1], found[2]
    words = ", ".join(f'"{word}"' for word in node) if isinstance(node, Mapping) else "false"
    cause = next((f'"{word}"' for sign, word in _CAUSES.items() if sign in why and f'"{word}"' in words), words)
    refuse(schema.owner, f"{'allows no value' if 'nsatisfiable' in why else 'cannot be held to'}: {cause}", path)
