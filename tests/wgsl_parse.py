"""Just enough of WGSL's grammar for the rules of ``tests/wgsl_lint.py``: declarations, functions, statements."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VARIABLE = re.compile(r"\bvar\s*<\s*([^>]+?)\s*>\s*(\w+)\s*:\s*([^;=]+)[;=]")
_CONSTANT = re.compile(r"^\s*(?:const|override)\s+(\w+)\s*(?::\s*(\w+))?\s*(?:=\s*([^;]+))?;", re.MULTILINE)
_FUNCTION = re.compile(r"\bfn\s+(\w+)\s*\(")
_SCALARS = {"f32": 4, "u32": 4, "i32": 4, "f16": 2}
_BRACKETS = {"(": re.compile(r"[()]"), "{": re.compile(r"[{}]")}
_COMPOUND = re.compile(r"(for|while|if|switch|loop)\b")
_ELSE = re.compile(r"\s*else\s*")
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")


def names_in(text: str) -> set[str]:
    """Identifiers, members apart."""
    return set(_NAME.findall(text))


@dataclass
class Node:
    """A statement. ``head`` is its text, or the condition or header of what has ``children``."""

    kind: str
    head: str
    children: list[Node] = field(default_factory=list["Node"])
    otherwise: list[Node] = field(default_factory=list["Node"])

    @property
    def leaves(self) -> bool:
        """Whether something inside ends the loop's turn, the loop or the function."""
        if self.kind == "simple":
            return self.head in ("break", "continue") or self.head.startswith("return")
        return any(node.leaves for node in (*self.children, *self.otherwise))


@dataclass(frozen=True)
class Function:
    """``result`` is the returned type, empty without one; ``head`` its parameters with their attributes."""

    name: str
    head: str
    result: str
    body: str
    nodes: list[Node]

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"(\w+)\s*:", self.head)


@dataclass(frozen=True)
class Source:
    """Module-scope variables by name, their address spaces and types; constants with their values."""

    text: str
    spaces: dict[str, str]
    types: dict[str, str]
    values: dict[str, str]
    functions: dict[str, Function]

    @classmethod
    def of(cls, text: str) -> Source:
        text = _COMMENT.sub("", text)
        spaces, types, values = dict[str, str](), dict[str, str](), dict[str, str]()
        for space, name, kind in _VARIABLE.findall(text):
            spaces[name], types[name] = space, kind.strip()
        for name, _, value in _CONSTANT.findall(text):
            if value.strip().startswith("array"):
                spaces[name], types[name] = "const", value
            else:
                values[name] = value.strip()
        return cls(text, spaces, types, values, _functions(text))

    @property
    def invocations(self) -> int:
        """Of a workgroup."""
        found = re.search(r"@workgroup_size\(([^)]*)\)", self.text)
        assert found, "no entry point"
        return math.prod(self._number(part) for part in found[1].split(",") if part.strip())

    def bytes_of(self, kind: str) -> int:
        """Bytes of a type in workgroup memory."""
        kind = kind.strip()
        if kind.startswith("array<"):
            element, count = kind[6:-1].rsplit(",", 1)
            return self.bytes_of(element) * self._number(count)
        if match := re.fullmatch(r"vec([234])<(\w+)>", kind):
            return (4 if match[1] == "3" else int(match[1])) * _SCALARS[match[2]]
        return _SCALARS[re.sub(r"atomic<(\w+)>", r"\1", kind)]

    def _number(self, expression: str) -> int:
        """A constant expression of whole numbers and named constants; sizes may not depend on overrides."""
        text = re.sub(
            r"[A-Za-z_]\w*", lambda m: str(self._number(self.values[m[0]])), re.sub(r"\b(\d+)[ui]\b", r"\1", expression)
        )
        assert re.fullmatch(r"[\d\s()+\-*/%<>]+", text), f"not a number: {expression}"
        return int(eval(text.replace("/", "//")))


def _functions(text: str) -> dict[str, Function]:
    found: dict[str, Function] = {}
    for match in _FUNCTION.finditer(text):
        close = _closing(text, match.end() - 1)
        start = text.index("{", close)
        end = _closing(text, start)
        result, body = text[close + 1 : start].replace("->", "").strip(), text[start + 1 : end]
        found[match[1]] = Function(match[1], text[match.end() : close], result, body, _statements(body))
    return found


def _closing(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed."""
    depth = 0
    for bracket in _BRACKETS[text[start]].finditer(text, start):
        depth += 1 if bracket[0] == text[start] else -1
        if not depth:
            return bracket.start()
    raise ValueError("a bracket is never closed")


def _statements(text: str) -> list[Node]:
    nodes: list[Node] = []
    at = _past_space(text, 0)
    while at < len(text):
        node, at = _statement(text, at)
        at = _past_space(text, at)
        if node:
            nodes.append(node)
    return nodes


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _statement(text: str, at: int) -> tuple[Node | None, int]:
    """The statement at ``at``, which is no space, and where it ends."""
    if keyword := _COMPOUND.match(text, at):
        return _compound(text, keyword.end(), keyword[1])
    if text[at] == "{":
        end = _closing(text, at)
        return Node("block", "", _statements(text[at + 1 : end])), end + 1
    end = text.index(";", at)
    head = " ".join(text[at:end].split())
    return (Node("simple", head) if head else None), end + 1


def _compound(text: str, at: int, kind: str) -> tuple[Node, int]:
    start, head = text.index("{", at), ""
    if kind != "loop":
        opening = text.index("(", at)
        close = _closing(text, opening)
        head, start = text[opening + 1 : close], text.index("{", close)
    end = _closing(text, start)
    node = Node(kind, head, _statements(text[start + 1 : end]))
    follows = _ELSE.match(text, end + 1)
    if kind != "if" or not follows:
        return node, end + 1
    other, after = _statement(text, follows.end())
    node.otherwise = [other] if other else []
    return node, after
