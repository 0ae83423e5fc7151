"""Whether a schema lets any answer end: a value that must hold itself never does."""

from __future__ import annotations

from collections.abc import Mapping

from app.prompt.grammar.exclusive import types_of
from app.prompt.grammar.schema import Node, Schema, as_list, as_map, refuse, required_of, target


def check_finite(schema: Schema) -> None:
    """Raises PromptError where only endless values would fit."""
    ending: set[str] = set()
    while grown := {n for n, node in schema.shared.items() if n not in ending and _ends(node, ending)}:
        ending |= grown
    if not _ends(schema.root, ending):
        refuse(schema.owner, "has a schema that no finite value fits")


def _ends(node: Node, ending: set[str]) -> bool:
    """Whether some finite value fits, given the shared schemas that are known to have one."""
    if isinstance(node, bool):
        return node
    if (name := target({"$ref": node.get("$ref", "")})) and name not in ending:
        return False
    options = as_list(node.get("anyOf"))
    if "anyOf" in node and not any(_ends(each, ending) for each in options):
        return False
    if not all(_ends(each, ending) for each in as_list(node.get("allOf"))):
        return False
    types = types_of(node)
    return bool(types - {"object", "array"}) or _object_ends(node, types, ending) or _array_ends(node, types, ending)


def _object_ends(node: Mapping[str, object], types: set[str], ending: set[str]) -> bool:
    properties = as_map(node.get("properties"))
    needed = [properties[key] for key in required_of(node) if key in properties]
    return "object" in types and all(_ends(each, ending) for each in needed)


def _array_ends(node: Mapping[str, object], types: set[str], ending: set[str]) -> bool:
    least = node.get("minItems", 0)
    places = as_list(node.get("prefixItems"))
    items = node.get("items", True)
    needed = places[: least if isinstance(least, int) else 0]
    if isinstance(least, int) and least > len(places) and isinstance(items, (Mapping, bool)):
        needed = [*needed, items]
    return "array" in types and all(_ends(each, ending) for each in needed)
