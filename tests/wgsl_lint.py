"""Rules for generated WGSL that no compiler here checks: what FXC, Metal and browsers trip over (spec: wgpu §5).

``check(kernel, caps)`` returns a line a violation. ``tests/wgsl_parse.py`` reads the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from app.engine.device import Caps
from app.engine.program import Kernel
from tests.wgsl_parse import Function, Node, Source, names_in

MAX_BINDINGS = 8
MAX_INVOCATIONS = 256
_BARRIER = re.compile(r"\b(workgroupBarrier|storageBarrier)\s*\(")
_PER_INVOCATION = re.compile(r"@builtin\((local_invocation\w+|global_invocation_id|subgroup_invocation_id)\)\s*(\w+)")
_DECLARED = re.compile(r"^(?:let|var|const)\s+(\w+)[^=]*(?:=(.*))?$", re.DOTALL)
_ASSIGNED = re.compile(r"^(\w+)[\w.]*\s*(?:[-+*/|&^%]|<<|>>)?=(?!=)(.*)$", re.DOTALL)
_STEPPED = re.compile(r"^(\w+)\s*(?:\+\+|--)$")
_FORBIDDEN = {"enable subgroups": r"enable\s+subgroups", "a pointer into storage": r"ptr\s*<\s*storage"}


def check(kernel: Kernel, caps: Caps) -> list[str]:
    """Everything wrong with a kernel that was written for ``caps``."""
    source = parsed(kernel.source)
    found = [*_words(source, caps), *_bindings(source, kernel), *_sizes(source, caps), *_flaws(kernel.source)]
    return [f"{kernel.label}: {line}" for line in found]


parsed = cache(Source.of)


@cache
def _flaws(text: str) -> list[str]:
    """What is wrong whatever the kernel is used for."""
    source = parsed(text)
    found = [*_component_writes(source)]
    for function in source.functions.values():
        found += [*_indexed_arrays(source, function), *_uniformity(source, function)]
    return found


def _words(source: Source, caps: Caps) -> Iterator[str]:
    for name, pattern in _FORBIDDEN.items():
        if re.search(pattern, source.text):
            yield f"uses {name}"
    if not caps.subgroup and re.search(r"\bsubgroup\w+", source.text):
        yield "uses subgroups where there are none"


def _bindings(source: Source, kernel: Kernel) -> Iterator[str]:
    storage = [name for name, space in source.spaces.items() if space.startswith("storage")]
    if len(storage) > MAX_BINDINGS:
        yield f"has {len(storage)} storage bindings"
    modes = tuple("write" if source.spaces[name].endswith("read_write") else "read" for name in storage)
    if modes != kernel.layout:
        yield f"declares {modes} and is bound as {kernel.layout}"


def _sizes(source: Source, caps: Caps) -> Iterator[str]:
    if source.invocations > MAX_INVOCATIONS:
        yield f"has {source.invocations} invocations"
    shared = sum(source.bytes_of(source.types[name]) for name, space in source.spaces.items() if space == "workgroup")
    if shared > caps.shared:
        yield f"takes {shared} bytes of workgroup memory of {caps.shared}"


def _component_writes(source: Source) -> Iterator[str]:
    """Metal can lose the neighbours of a component written to a workgroup's vector."""
    for name, space in source.spaces.items():
        depth = source.types[name].count("array<")
        if space != "workgroup" or not re.search(r"\bvec[234]", source.types[name]):
            continue
        component = r"(?:\.[xyzwrgba]\b|" + r"\[[^=;]*?\])"
        target = rf"\b{name}\s*" + r"(?:\[(?:[^\[\]]|\[[^\[\]]*\])*\]\s*)" * depth + component
        for match in re.finditer(target + r"\s*(?:[-+*/|&^%])?=(?!=)", source.text):
            yield f"writes a component: {match.group(0)}"


def _indexed_arrays(source: Source, function: Function) -> Iterator[str]:
    """Compilers spill a private array that is indexed by a variable."""
    arrays = {name for name, space in source.spaces.items() if space in ("private", "const")}
    giving = "|".join(f.name for f in source.functions.values() if f.result.startswith("array<"))
    kinds = r":\s*array<|=\s*array\b" + (rf"|=\s*(?:{giving})\s*\(" if giving else "")
    arrays |= set(re.findall(rf"\b(?:let|var|const)\s+(\w+)\s*(?:{kinds})", function.body))
    for name, index in re.findall(r"(?<!\.)\b(\w+)\s*\[([^\]]*)\]", function.body):
        if name in arrays and not re.fullmatch(r"\s*\d+[ui]?\s*", index):
            yield f"indexes the private array {name} by {index}"


def _uniformity(source: Source, function: Function) -> list[str]:
    """Barriers that not every invocation of a workgroup is sure to reach as often as the others."""
    walk = _Walk(source)
    scope = dict.fromkeys(function.parameters, function.name != "main")
    scope |= {name: True for _, name in _PER_INVOCATION.findall(function.head)}
    walk.nodes(function.nodes, [scope], varying=False)
    return sorted(set(walk.found))


class _Walk:
    """Follows which names vary between invocations, and whether the flow does."""

    def __init__(self, source: Source) -> None:
        self.found: list[str] = []
        self._waiting = {f.name for f in source.functions.values() if _BARRIER.search(f.body)}
        self._shared = {n for n, space in source.spaces.items() if space == "workgroup" or space.endswith("read_write")}
        self._unsure = {f.name for f in source.functions.values() if self._shared & names_in(f.body)}
        self._returned = False

    def nodes(self, nodes: list[Node], scopes: list[dict[str, bool]], *, varying: bool) -> bool:
        """Whether the flow varies after the nodes."""
        for node in nodes:
            varying = self._node(node, scopes, varying=varying or self._returned)
        return varying

    def _node(self, node: Node, scopes: list[dict[str, bool]], *, varying: bool) -> bool:
        if node.kind == "simple":
            return self._simple(node.head, scopes, varying=varying)
        inner = [*scopes, dict[str, bool]()]
        if node.kind in ("for", "while", "loop"):
            self._loop(node, inner, varying=varying)
            return varying
        within = varying or self._varies(node.head, scopes)
        after = [self.nodes(branch, [*inner, {}], varying=within) for branch in (node.children, node.otherwise)]
        return varying or (node.leaves and within) or (node.kind == "block" and after[0])

    def _loop(self, node: Node, scopes: list[dict[str, bool]], *, varying: bool) -> None:
        parts = node.head.split(";")
        first, condition, step = parts if len(parts) == 3 else ("", node.head, "")
        self._simple(first.strip(), scopes, varying=varying)
        before: object = None
        while before != (scopes, varying):
            before = [dict(scope) for scope in scopes], varying
            within = varying or self._varies(condition, scopes)
            varying = self.nodes(node.children, [*scopes, {}], varying=within)
            self._simple(step.strip(), scopes, varying=varying)

    def _simple(self, text: str, scopes: list[dict[str, bool]], *, varying: bool) -> bool:
        if varying and (_BARRIER.search(text) or self._waiting & names_in(text)):
            self.found.append(f"a barrier in non-uniform flow: {text}")
        if text.startswith("return") and varying:
            self._returned = True
        if match := _DECLARED.match(text):
            scopes[-1][match[1]] = varying or self._varies(match[2] or "", scopes)
        elif match := _ASSIGNED.match(text):
            self._assign(match[1], scopes, varying=varying or self._varies(match[2], scopes))
        elif match := _STEPPED.match(text):
            self._assign(match[1], scopes, varying=varying)
        return varying

    def _assign(self, name: str, scopes: list[dict[str, bool]], *, varying: bool) -> None:
        for scope in reversed(scopes):
            if name in scope:
                scope[name] = scope[name] or varying
                return

    def _varies(self, expression: str, scopes: list[dict[str, bool]]) -> bool:
        names = names_in(expression)
        if names & (self._shared | self._unsure) or any(n.startswith("subgroup") for n in names):
            return True
        return any(next((scope[n] for scope in reversed(scopes) if n in scope), False) for n in names)
