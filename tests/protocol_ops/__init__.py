"""The operations that recorded protocol cases name.

A module here is named after the file of cases it serves and registers its operations on import: with
``op`` a function from a case's input to its output, with ``check`` one that asserts a whole case, for
files where more than one output is right.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Check = Callable[[Case], None]
Op = Callable[[Any], Any]

SUITES = ("binarypack", "frames", "proofs", "codes", "planner", "lookup", "conversation")

OPS: dict[str, Op] = {}
_CHECKS: dict[tuple[str, str], Check] = {}


def op(name: str) -> Callable[[Op], Op]:
    """Registers the function under it as operation ``name``: input to output."""

    def register(function: Op) -> Op:
        OPS[name] = function
        return function

    return register


def check(suite: str, name: str) -> Callable[[Check], Check]:
    """Registers the function under it as the check of operation ``name`` in files called ``suite``."""

    def register(function: Check) -> Check:
        _CHECKS[suite, name] = function
        return function

    return register


def load(suite: str) -> None:
    """Imports the module that serves ``suite``, if there is one."""
    name = f"{__name__}.{suite}"
    if importlib.util.find_spec(name) is not None:
        importlib.import_module(name)


def load_cases(path: Path) -> list[Case]:
    return json.loads(path.read_text(encoding="utf-8"))["cases"]


def find_check(suite: str, case: Case) -> Check | None:
    """The check of one case of a file called ``suite``, or None when nobody knows its operation."""
    exact = _CHECKS.get((suite, case["op"]))
    if exact is not None:
        return exact
    return _same_output if case["op"] in OPS else None


def _same_output(case: Case) -> None:
    assert OPS[case["op"]](case["in"]) == case["out"]


def title(case: Case, index: int) -> str:
    return f"{index} {case['op']} {case.get('name', '')}".strip()
