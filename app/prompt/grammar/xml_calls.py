"""A call as a function block with one block a parameter, in the schema's order (spec: rooms §18.5, A-063, A-069)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.prompt.grammar.budget import refuse
from app.prompt.grammar.compiling import json_rule
from app.prompt.grammar.keywords import MOST_DEPTH
from app.prompt.grammar.raw_text import ANY_TEXT, CLOSING, written
from app.prompt.grammar.schema import Node, Schema, as_list, as_map, required_of

NAME = re.compile(r"[^<>\r\n]{1,128}")
MOST_SHAPES = 64
MOST_EXTRA = 32
COMMON = [f"ptext[lazy]: /(?s:.*){CLOSING}\\n/", 'pend: "\\n</parameter>\\n"']
"""Rules that all calls share: a free text with the tag that ends it, and that tag after JSON."""

_UNWRITTEN = ("patternProperties", "minProperties", "maxProperties")


@dataclass(frozen=True)
class Shape:
    """One way to fill in the parameters. ``extra``: the schema of undeclared ones, None where nothing is said."""

    properties: Mapping[str, Node] = field(default_factory=dict[str, Node])
    required: tuple[str, ...] = ()
    extra: Node | None = None


def xml_call(rule: str, name: str, schema: Schema) -> list[str]:
    """Grammar lines; ``rule`` is everything between the tags. Undeclared parameters only where the schema says so."""
    found = [shape for shape in shapes(schema, schema.root) if _possible(shape)]
    if not found:
        refuse(schema.owner, "has a schema that no value fits")
    lines: list[str] = []
    bodies = [_shape_rule(f"{rule}_{number}", schema, shape, lines) for number, shape in enumerate(found)]
    opening = json.dumps(f"\n<function={name}>\n")
    return [f'{rule}: {opening} ({" | ".join(bodies)}) "</function>\\n"', *lines]


def _shape_rule(rule: str, schema: Schema, shape: Shape, lines: list[str]) -> str:
    """Adds the lines of a shape, and gives the name of its rule."""
    items: list[str] = []
    for number, (key, node) in enumerate(_ordered(shape).items()):
        if not NAME.fullmatch(key):
            refuse(schema.owner, "has a parameter whose name is empty, too long or has angle brackets or line breaks")
        if schema.at(node) is False:
            continue
        header = json.dumps(f"<parameter={key}>\n")
        lines.append(f"{rule}_{number}: {header} {_value(f'{rule}_{number}', schema, node, lines)}")
        items.append(f"{rule}_{number}" + ("" if key in shape.required else "?"))
    if shape.extra is not None and shape.extra is not False:
        lines.append(f"{rule}_x: {rule.upper()}_X {_value(f'{rule}_x', schema, shape.extra, lines)}")
        lines.append(f"{rule.upper()}_X: {_other_names(_ordered(shape))}")
        items.append(f"{rule}_x{{0,{MOST_EXTRA}}}")
    lines.append(f"{rule}: {' '.join(items) or json.dumps('')}")
    return rule


def _value(rule: str, schema: Schema, node: Node, lines: list[str]) -> str:
    """What follows a parameter's name, the tag that ends it included."""
    terms = written(schema, node).terms
    if not terms:
        lines.append(f"{rule}_v: {json_rule(schema, node)}")
        return f"{rule}_v pend"
    if ANY_TEXT in terms:
        return "ptext"
    lines.append(f'{rule.upper()}_V: ({" | ".join(terms)}) "\\n</parameter>\\n"')
    return f"{rule.upper()}_V"


def _other_names(declared: Mapping[str, Node]) -> str:
    taken = "".join(f" & ~{json.dumps(f'<parameter={key}>' + chr(10))}" for key in declared)
    return f"/<parameter=[^<>\\r\\n]{{1,128}}>\\n/{taken}"


def _ordered(shape: Shape) -> dict[str, Node]:
    """All parameters that have a place: declared ones first, then what is required without a schema."""
    unnamed: Node = True if shape.extra is None else shape.extra
    return {**shape.properties, **{key: unnamed for key in shape.required if key not in shape.properties}}


def _possible(shape: Shape) -> bool:
    return all(_ordered(shape)[key] is not False for key in shape.required)


def shapes(schema: Schema, node: Node, level: int = 0) -> list[Shape]:
    """Alternatives of an object's schema. Raises PromptError where they are too many or cannot be written."""
    schema.step()
    if level > MOST_DEPTH:
        refuse(schema.owner, f"has parameters whose alternatives are nested deeper than {MOST_DEPTH}")
    node = schema.at(node)
    if isinstance(node, bool):
        return [Shape()] if node else []
    if word := next((word for word in _UNWRITTEN if word in node), ""):
        refuse(
            schema.owner, f'uses "{word}" for its parameters, which this model\'s way of writing calls has no room for'
        )
    found = [_own_shape(node)]
    for group in _groups(schema, node, level + 1):
        found = [_both(one, other) for one in found for other in group]
        if len(found) > MOST_SHAPES:
            refuse(schema.owner, 'combines too many alternatives by "anyOf" for its parameters')
    return found


def _own_shape(node: Mapping[str, object]) -> Shape:
    extra = node.get("additionalProperties")
    return Shape(
        as_map(node.get("properties")), tuple(required_of(node)), extra if isinstance(extra, (Mapping, bool)) else None
    )


def _groups(schema: Schema, node: Mapping[str, object], level: int) -> Iterator[list[Shape]]:
    if "$ref" in node:
        yield shapes(schema, {"$ref": node["$ref"]}, level)
    for each in as_list(node.get("allOf")):
        yield shapes(schema, each, level)
    if "anyOf" in node:
        yield [shape for each in as_list(node["anyOf"]) for shape in shapes(schema, each, level)]


def _both(one: Shape, other: Shape) -> Shape:
    keys = dict.fromkeys([*one.properties, *other.properties])
    properties = {key: _meet(_part(one, key), _part(other, key)) for key in keys}
    extra = other.extra if one.extra is None else one.extra if other.extra is None else _meet(one.extra, other.extra)
    return Shape(properties, tuple(dict.fromkeys([*one.required, *other.required])), extra)


def _part(shape: Shape, key: str) -> Node:
    return shape.properties.get(key, True if shape.extra is None else shape.extra)


def _meet(one: Node, other: Node) -> Node:
    if one is False or other is False:
        return False
    if one is True or one == other:
        return other
    return one if other is True else {"allOf": [one, other]}
