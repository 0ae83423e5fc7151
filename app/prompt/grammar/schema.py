"""A client's JSON Schema made into one the compiler holds answers to, or refused by name (spec: A-063, A-064)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from app.prompt.ask import Json
from app.prompt.grammar import keywords as kw
from app.prompt.grammar.budget import Steps, refuse
from app.prompt.grammar.pointers import lookup
from app.prompt.grammar.repetition import MOST_REPEATED, too_repeated

Node = Mapping[str, object] | bool
_UNHELD_PATTERN = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?<?[=!]|\\[1-9])")


@dataclass(frozen=True)
class Schema:
    """``root`` and ``shared`` hold only words of ``keywords``; every ``$ref`` is "#/$defs/" and a key of ``shared``."""

    owner: str
    root: Node
    shared: Mapping[str, Node]
    nodes: int
    steps: Steps = field(default_factory=Steps, compare=False)

    def step(self, count: int = 1) -> None:
        """Raises PromptError when this schema causes too much work."""
        self.steps.take(self.owner, count)

    def at(self, node: Node) -> Node:
        """What a chain of references comes to."""
        while isinstance(node, Mapping) and (name := target(node)):
            node = self.shared[name]
        return node


def target(node: Mapping[str, object]) -> str:
    """The key of the shared schema that ``node`` is nothing but a reference to, or ""."""
    reference = node.get("$ref")
    return reference.rpartition("/")[2] if isinstance(reference, str) and len(node) == 1 else ""


def parts(node: Node) -> dict[str, Node]:
    """The schemas directly inside one by their path in it, without those it refers to."""
    if isinstance(node, bool):
        return {}
    inner = {word: node[word] for word in ("items", "additionalProperties") if word in node}
    for word in kw.SCHEMA_MAPS & node.keys():
        inner |= {f"{word}/{name}": each for name, each in as_map(node[word]).items()}
    for word in kw.SCHEMA_LISTS.keys() & node.keys():
        inner |= {f"{word}/{number}": each for number, each in enumerate(as_list(node[word]))}
    return {path: each for path, each in inner.items() if isinstance(each, (Mapping, bool))}


def as_map(value: object) -> Mapping[str, Node]:
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Node]:
    return value if isinstance(value, list) else []


def required_of(node: Mapping[str, object]) -> list[str]:
    value = node.get("required")
    return [str(key) for key in value] if isinstance(value, list) else []


def read_schema(raw: Json, owner: str, steps: Steps | None = None) -> Schema:
    """``owner`` names the schema in messages: 'The tool "search"'. Raises PromptError."""
    _check_size(raw, owner)
    return _Reading(raw, owner, steps or Steps()).schema()


def _check_size(raw: Json, owner: str) -> None:
    try:
        text = json.dumps(raw, allow_nan=False)
    except (RecursionError, ValueError, TypeError):
        refuse(owner, "has a schema that is no JSON or is nested too deep")
    if len(text) > kw.MOST_CHARS:
        refuse(owner, f"has a schema of more than {kw.MOST_CHARS} characters")


class _Reading:
    """One schema on its way through; what is referred to is read once and shared."""

    def __init__(self, raw: Json, owner: str, steps: Steps) -> None:
        self._steps = steps
        self._raw = raw
        self._owner = owner
        self._nodes = 0
        self._names: dict[str, str] = {}

    def schema(self) -> Schema:
        root = self._node(self._raw, "", 0)
        shared: dict[str, Node] = {}
        while len(shared) < len(self._names):
            reference, name = list(self._names.items())[len(shared)]
            found = lookup(self._raw, reference)
            if found is None:
                refuse(self._owner, f'has a "$ref" to {reference[:100]}, which is not in its schema')
            shared[name] = self._node(found, reference, 0)
        self._check_loops(shared)
        return Schema(self._owner, root, shared, self._nodes, self._steps)

    def _check_loops(self, shared: Mapping[str, Node]) -> None:
        for reference, name in self._names.items():
            seen: set[str] = set()
            while name and name not in seen:
                seen.add(name)
                node = shared[name]
                name = target(node) if isinstance(node, Mapping) else ""
            if name:
                refuse(self._owner, f'has a "$ref" to {reference[:100]} that leads back to itself')

    def _node(self, raw: object, path: str, depth: int) -> Node:
        self._nodes += 1
        if depth > kw.MOST_DEPTH:
            refuse(self._owner, f"has a schema nested deeper than {kw.MOST_DEPTH}", path[:100])
        if self._nodes > kw.MOST_NODES:
            refuse(self._owner, f"has a schema of more than {kw.MOST_NODES} parts")
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, Mapping):
            refuse(self._owner, "has something that is no schema", path)
        return _Words(raw, path, self._owner, self._named, lambda inner, at: self._node(inner, at, depth + 1)).read()

    def _named(self, reference: str) -> str:
        base = self._raw.get("$id")
        local = reference.removeprefix(base) if isinstance(base, str) else reference
        return self._names.setdefault(local, f"s{len(self._names)}")


@dataclass(frozen=True)
class _Words:
    """The words of one schema object. ``inner`` reads a schema inside it, ``named`` names one it refers to."""

    raw: Json
    path: str
    owner: str
    named: Callable[[str], str]
    inner: Callable[[object, str], Node]

    def read(self) -> Node:
        if self._trivial("not", {}) or self.raw.get("not") is True:
            return False
        kept: dict[str, object] = {}
        for word, value in self.raw.items():
            self._read_word(word, value, kept)
        if self.raw.get("uniqueItems") is True:
            self._bound_unique(kept)
        return kept

    def _read_word(self, word: str, value: object, kept: dict[str, object]) -> None:
        if word == "items" and isinstance(value, list):
            self._read_word("prefixItems", value, kept)
        elif word == "additionalItems":
            if isinstance(self.raw.get("items"), list):
                kept["items"] = self.inner(value, f"{self.path}/{word}")
        elif word in kw.SCHEMA_LISTS:
            kept[word] = self._list(word, value)
        elif word in kw.SCHEMA_MAPS:
            kept[word] = self._map(word, value)
        elif word in ("items", "additionalProperties"):
            kept[word] = self.inner(value, f"{self.path}/{word}")
        elif word in kw.REFUSED:
            self._refused(word, value, kept)
        else:
            self._plain(word, value, kept)

    def _plain(self, word: str, value: object, kept: dict[str, object]) -> None:
        match word:
            case "type":
                kept[word] = self._types(value)
            case "enum" | "required":
                kept[word] = self._values(word, value)
            case "const":
                kept[word] = value
            case "$ref":
                self._need(isinstance(value, str), word)
                kept[word] = f"#/$defs/{self.named(str(value))}"
            case "pattern":
                self._pattern(value, kept)
            case "format":
                kept |= {word: value} if value in sorted(kw.FORMATS) else {}
            case _ if word in kw.COUNTS:
                kept[word] = self._count(word, value)
            case _ if word in kw.BOUNDS:
                self._need(isinstance(value, (int, float)), word)
                kept[word] = value
            case _:
                pass

    def _types(self, value: object) -> object:
        names = value if isinstance(value, list) else [value]
        self._need(bool(names) and all(isinstance(name, str) and name in kw.TYPES for name in names), "type")
        return value

    def _values(self, word: str, value: object) -> object:
        if not isinstance(value, list):
            self._cannot(word)
        if len(value) > kw.MOST_VALUES:
            refuse(self.owner, f'has more than {kw.MOST_VALUES} values in "{word}"', self.path)
        self._need(word == "enum" or all(isinstance(each, str) for each in value), word)
        return value

    def _count(self, word: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value) or value < 0:
            self._cannot(word)
        return int(value)

    def _pattern(self, value: object, kept: dict[str, object]) -> None:
        """Look-around cannot be held; beside a known format that one says the same, as in e-mail addresses."""
        if not isinstance(value, str):
            self._cannot("pattern")
        if not _UNHELD_PATTERN.search(value):
            self._check_repetition(value, "pattern")
            kept["pattern"] = value
        elif self.raw.get("format") not in sorted(kw.FORMATS):
            refuse(self.owner, 'has look-around or a back reference in "pattern"', self.path)

    def _check_repetition(self, pattern: str, word: str) -> None:
        if too_repeated(pattern):
            why = f'has a "{word}" whose repetitions within repetitions come to more than {MOST_REPEATED}'
            refuse(self.owner, why, self.path)

    def _list(self, word: str, value: object) -> list[Node]:
        if not isinstance(value, list):
            self._cannot(word)
        if len(value) > kw.SCHEMA_LISTS[word]:
            refuse(self.owner, f'has more than {kw.SCHEMA_LISTS[word]} schemas in "{word}"', self.path)
        return [self.inner(each, f"{self.path}/{word}/{number}") for number, each in enumerate(value)]

    def _map(self, word: str, value: object) -> dict[str, Node]:
        if not isinstance(value, Mapping):
            self._cannot(word)
        for name in value if word == "patternProperties" else ():
            self._check_repetition(name, word)
        return {name: self.inner(each, f"{self.path}/{word}/{name}") for name, each in value.items()}

    def _refused(self, word: str, value: object, kept: dict[str, object]) -> None:
        simple = not {"allOf", "anyOf", "oneOf", "$ref", "if", "prefixItems"} & self.raw.keys()
        instead = {"unevaluatedProperties": "additionalProperties", "unevaluatedItems": "items"}.get(word)
        if instead and simple:
            if instead not in self.raw:
                kept[instead] = self.inner(value, f"{self.path}/{word}")
        elif not (word == "propertyNames" and (self._trivial(word, {"type": "string"}) or value is True)):
            if word == "if" and not {"then", "else"} & self.raw.keys():
                return
            refuse(self.owner, f'uses "{word}", which an answer cannot be held to here', self.path)

    def _trivial(self, word: str, allowed: Json) -> bool:
        value = self.raw.get(word)
        return isinstance(value, Mapping) and all(allowed.get(key) == each for key, each in value.items())

    def _bound_unique(self, kept: dict[str, object]) -> None:
        items = kept.get("items")
        values = items.get("enum") if isinstance(items, Mapping) else None
        if isinstance(values, list) and "prefixItems" not in kept:
            most = kept.get("maxItems")
            kept["maxItems"] = min(len(values), most) if isinstance(most, int) else len(values)

    def _need(self, fine: bool, word: str) -> None:
        if not fine:
            self._cannot(word)

    def _cannot(self, word: str) -> NoReturn:
        refuse(self.owner, f'has a "{word}" that JSON Schema does not allow', self.path)
