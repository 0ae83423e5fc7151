"""``oneOf`` as ``anyOf`` where that is the same: no value fits two of its options (JSON Schema 2020-12 §10.2.1.3)."""

from __future__ import annotations

from collections.abc import Mapping

from app.prompt.grammar import keywords as kw
from app.prompt.grammar.budget import refuse
from app.prompt.grammar.schema import Node, Schema, as_list, as_map, required_of

MOST_LEVELS = 6
_NAMES: dict[type, str] = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    type(None): "null",
}


def without_one_of(schema: Schema) -> Schema:
    """Raises PromptError where two options may fit the same value."""
    rewriting = _Rewriting(schema)
    shared = {name: rewriting.node(node) for name, node in schema.shared.items()}
    return Schema(schema.owner, rewriting.node(schema.root), shared, schema.nodes, schema.steps)


class _Rewriting:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[tuple[int, int, int], tuple[Node, Node, bool]] = {}
        """By the ids of two nodes and the level; they are kept with it, so that no id is used again."""

    def node(self, node: Node) -> Node:
        if isinstance(node, bool):
            return node
        changed = {word: self._value(word, value) for word, value in node.items()}
        return self._one_of(changed) if "oneOf" in node else changed

    def _value(self, word: str, value: object) -> object:
        if word in kw.SCHEMA_LISTS:
            return [self.node(each) for each in as_list(value)]
        if word in kw.SCHEMA_MAPS:
            return {name: self.node(each) for name, each in as_map(value).items()}
        if word in ("items", "additionalProperties") and isinstance(value, (Mapping, bool)):
            return self.node(value)
        return value

    def _one_of(self, node: dict[str, object]) -> Node:
        options = _alone(as_list(node["oneOf"]))
        within = {"type": node["type"]} if "type" in node else {}
        typed = [{**within, **each} if within and isinstance(each, Mapping) else each for each in options]
        pairs = ((a, b) for number, a in enumerate(typed) for b in typed[number + 1 :])
        if not all(self.apart(a, b) for a, b in pairs):
            refuse(self._schema.owner, 'has a "oneOf" whose options cannot be told apart for sure; use "anyOf"')
        key = "allOf" if "anyOf" in node else "anyOf"
        extra: list[Node] = [{"anyOf": options}, *as_list(node.get("allOf"))] if key == "allOf" else options
        return {key if word == "oneOf" else word: extra if word == "oneOf" else node[word] for word in node}

    def apart(self, one: Node, other: Node, level: int = 0) -> bool:
        """Whether surely no value fits both."""
        one, other = self._schema.at(one), self._schema.at(other)
        if one is False or other is False:
            return True
        if isinstance(one, bool) or isinstance(other, bool) or level > MOST_LEVELS:
            return False
        key = id(one), id(other), level
        if key not in self._known:
            self._schema.step()
            self._known[key] = one, other, self._found_apart(one, other, level)
        return self._known[key][2]

    def _found_apart(self, one: Mapping[str, object], other: Mapping[str, object], level: int) -> bool:
        for first, second in ((one, other), (other, one)):
            for word in ("anyOf", "oneOf"):
                if word in first and all(self.apart(each, second, level + 1) for each in as_list(first[word])):
                    return True
            if any(self.apart(each, second, level + 1) for each in as_list(first.get("allOf"))):
                return True
        return self._plainly_apart(one, other, level)

    def _plainly_apart(self, one: Mapping[str, object], other: Mapping[str, object], level: int) -> bool:
        ours, theirs = types_of(one), types_of(other)
        if not ours & theirs:
            return True
        values = values_of(one), values_of(other)
        if values[0] is not None and values[1] is not None:
            return not any(a == b and type(a) is type(b) for a in values[0] for b in values[1])
        if ours & theirs != {"object"}:
            return False
        keys = dict.fromkeys([*required_of(one), *required_of(other)])
        return any(self.apart(_property(one, key), _property(other, key), level + 1) for key in keys)


def types_of(node: Mapping[str, object]) -> set[str]:
    """The types a value may have; "integer" counts as a "number" too."""
    given = node.get("type", sorted(kw.TYPES))
    names = {str(name) for name in given} if isinstance(given, list) else {str(given)}
    if (values := values_of(node)) is not None:
        names &= {_NAMES.get(type(value), "object") for value in values} | {"number"}
    return names | ({"integer"} if "number" in names else set())


def values_of(node: Mapping[str, object]) -> list[object] | None:
    """The values of ``const`` or ``enum``, None where any value of the type may come."""
    if "const" in node:
        return [node["const"]]
    values = node.get("enum")
    return values if isinstance(values, list) else None


def _property(node: Mapping[str, object], key: str) -> Node:
    found = as_map(node.get("properties")).get(key)
    if found is None and "patternProperties" not in node:
        extra = node.get("additionalProperties", True)
        return extra if isinstance(extra, (Mapping, bool)) else True
    return True if found is None else found


def _alone(options: list[Node]) -> list[Node]:
    """Options that only require one property each: each of them forbids the others'."""
    keys = [_only_required(each) for each in options]
    if not all(keys) or len(set(keys)) < len(keys):
        return options
    return [{"required": [key], "properties": {k: False for k in keys if k != key}} for key in keys]


def _only_required(node: Node) -> str:
    if isinstance(node, bool) or node.keys() - {"type"} != {"required"} or node.get("type", "object") != "object":
        return ""
    required = required_of(node)
    return required[0] if len(required) == 1 else ""
