"""Which types a parameter's JSON Schema allows, and what a text without quotes means by it (spec: product A-069)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.prompt.json_text import in_string, read_json

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
MOST_SCHEMAS, DEEPEST = 500, 32
PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


@dataclass(frozen=True)
class Allowed:
    """``values``: strings of an enumeration, which may also stand in quotes."""

    types: frozenset[str]
    values: frozenset[str] = frozenset()

    @property
    def text_only(self) -> bool:
        return self.types == frozenset({"string"})

    def as_json(self, text: str) -> str:
        """The JSON a parameter's whole text means; what is nothing else is a string, so that nothing is lost."""
        bare = text.strip()
        written = PYTHON_WORDS.get(bare, bare)
        try:
            value = read_json(written)
        except ValueError:
            return f'"{in_string(text)}"'
        fits = value in self.values if isinstance(value, str) else type_of(value) & self.types
        return written if fits or "string" not in self.types else f'"{in_string(text)}"'


def allowed(parameters: Mapping[str, object], key: str) -> Allowed:
    """What a tool's parameter may be; one it does not declare may be anything unless the schema says more."""
    reader = _Reader(parameters)
    found = [reader.read(node) for node in reader.declared(parameters, key)]
    found = found or [reader.read(parameters.get("additionalProperties"))]
    types, values = _union(types for types, _ in found), [value for _, more in found for value in more]
    return Allowed(types or TYPES, frozenset(values))


def type_of(value: object) -> frozenset[str]:
    """All names JSON Schema has for a value's type."""
    match value:
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"number"} | ({"integer"} if value.is_integer() else set()))
        case str():
            return frozenset({"string"})
        case None:
            return frozenset({"null"})
        case list():
            return frozenset({"array"})
        case _:
            return frozenset({"object"})


class _Reader:
    """Reads so many schemas and so deep, and no more: references can go round in circles."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._left = MOST_SCHEMAS

    def declared(self, node: object, key: str, depth: int = 0) -> list[object]:
        """The schemas of a parameter, wherever the parts of its tool's schema speak of it."""
        if not isinstance(node, Mapping) or not self._may(depth):
            return []
        properties = node.get("properties")
        own: list[object] = [properties[key]] if isinstance(properties, Mapping) and key in properties else []
        parts = [part for group in _alternatives(node, self._root) for part in group]
        return own + [found for part in parts for found in self.declared(part, key, depth + 1)]

    def read(self, node: object, depth: int = 0) -> tuple[frozenset[str], list[str]]:
        """The types a schema allows, and the strings it lists."""
        if not isinstance(node, Mapping) or not self._may(depth):
            return TYPES, []
        listed = node.get("enum", [node["const"]] if "const" in node else None)
        if isinstance(listed, list):
            return _union(type_of(value) for value in listed), [value for value in listed if isinstance(value, str)]
        types, values = _named(node.get("type")), list[str]()
        for part in _alternatives(node, self._root):
            found = [self.read(option, depth + 1) for option in part]
            types &= _union(option for option, _ in found)
            values += [value for _, more in found for value in more]
        return types, values

    def _may(self, depth: int) -> bool:
        self._left -= 1
        return self._left >= 0 and depth <= DEEPEST


def _alternatives(node: Mapping[str, object], root: Mapping[str, object]) -> list[list[object]]:
    """Groups of schemas; a value fits one of each group."""
    groups: list[list[object]] = [list(group) for word in ("anyOf", "oneOf") if (group := _listed(node.get(word)))]
    groups += [[each] for each in _listed(node.get("allOf"))]
    reference = node.get("$ref")
    return groups + ([[_lookup(root, reference)]] if isinstance(reference, str) else [])


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _named(name: object) -> frozenset[str]:
    names = {name} if isinstance(name, str) else set(map(str, _listed(name)))
    return frozenset(names | ({"integer"} if "number" in names else set())) & TYPES or TYPES


def _union(groups: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*groups)


def _lookup(root: object, reference: str) -> object:
    """A place in the same schema; None for any other."""
    found = root
    for step in reference.removeprefix("#").split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
