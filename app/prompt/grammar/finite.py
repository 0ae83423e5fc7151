"""Whether a schema lets any answer end: a value that must hold itself never does."""

from __future__ import annotations

from collections.abc import Mapping

from app.prompt.grammar.budget import refuse
from app.prompt.grammar.exclusive import types_of
from app.prompt.grammar.schema import Node, Schema, as_list, as_map, required_of, target


def check_finite(schema: Schema) -> None:
    """Raises PromptError where only endless values would fit."""
    ending: set[str] = set()
    while _grow(schema, ending):
        pass
    if not _ends(schema, schema.root, ending):
        refuse(schema.owner, "has a schema that no finite value fits")


def _grow(schema: Schema, ending: set[str]) -> bool:
    """Adds the shared schemas that end by what is known. Backwards, for most refer to what was found after them."""
    before = len(ending)
    for name, node in reversed(list(schema.shared.items())):
        if name not in ending and _ends(schema, node, ending):
            ending.add(name)
    return len(ending) > before


def _ends(schema: Schema, node: Node, ending: set[str]) -> bool:
    """Whether some finite value fits, given the shared schemas that are known to have one."""
    schema.step()
    if isinstance(node, bool):
        return node
    if (name := target({"$ref": node.get("$ref", "")})) and name not in ending:
        return False
    if "anyOf" in node and not any(_ends(schema, each, ending) for each in as_list(node["anyOf"])):
        return False
    if not all(_ends(schema, each, ending) for each in as_list(node.get("allOf"))):
        return False
    types = types_of(node)
    inner = {"object": _needed_in_object, "array": _needed_in_array}
    return bool(types - inner.keys()) or any(
        all(_ends(schema, each, ending) for each in inner[kind](node)) for kind in sorted(types)
    )


def _needed_in_object(node: Mapping[str, object]) -> list[Node]:
    properties = as_map(node.get("properties"))
    return [properties[key] for key in required_of(node) if key in properties]


def _needed_in_array(node: Mapping[str, object]) -> list[Node]:
    least = node.get("minItems", 0)
    places = as_list(node.get("prefixItems"))
    items = node.get("items", True)
    needed = places[: least if isinstance(least, int) else 0]
    rest: list[Node] = [items] if isinstance(items, (Mapping, bool)) else []
    return needed + rest if isinstance(least, int) and least > len(places) else needed
