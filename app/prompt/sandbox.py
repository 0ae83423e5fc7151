"""The sandbox a model file's template runs in: it reads a conversation, and cannot reach or exhaust anything.

A template comes with a downloaded file, so it is treated as hostile: no attribute of Python's own objects, no
unbounded loops over ``range``, no string or number that grows without bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.core.errors import PromptError

SOURCE_CHARS = 128 * 1024
OUTPUT_CHARS = 8_000_000
VALUE_CHARS = 4_000_000
LOOP_STEPS = 100_000
UNSAFE_FILTERS = frozenset({"center", "indent", "wordwrap", "format", "filesizeformat", "pprint", "xmlattr"})
GUARDED = frozenset({"*", "**", "+", "%"})


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Operators that could make a huge value are checked before they run."""

    intercepted_binops = GUARDED

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        self.filters = {name: f for name, f in self.filters.items() if name not in UNSAFE_FILTERS}
        self.filters["tojson"] = _tojson
        self.globals = {
            "range": _Steps().range,
            "namespace": self.globals["namespace"],
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or (operator == "%" and isinstance(left, str)):
            raise SecurityError(f"The operator {operator} is not allowed here.")
        if operator == "*" and _sized(left) * _sized(right) > VALUE_CHARS:
            raise SecurityError("A value grows too large.")
        if operator == "+" and isinstance(left, str) and len(left) > VALUE_CHARS:
            raise SecurityError("A text grows too large.")
        return super().call_binop(context, operator, left, right)


def _sized(value: Any) -> int:
    if isinstance(value, (str, list, tuple)):
        return len(value)
    return abs(int(value)) if isinstance(value, (int, float)) else 1


class _Steps:
    """One budget of loop steps for all ranges of a rendering."""

    def __init__(self) -> None:
        self._left = LOOP_STEPS

    def range(self, *bounds: int) -> range:
        steps = range(*bounds)
        self._left -= len(steps)
        if self._left < 0:
            raise SecurityError("The template loops too long.")
        return steps


def _tojson(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=min(indent, 8) if indent else None)


def _raise_exception(message: object) -> NoReturn:
    raise TemplateError(str(message)[:200])


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form[:100])


def render_bounded(source: str, variables: dict[str, Any]) -> str:
    """Raises PromptError for a template that is damaged, refuses the conversation or wants too much."""
    if len(source) > SOURCE_CHARS:
        raise PromptError("The model's chat template is too long.", "Get the model file again.")
    try:
        return _joined(TemplateSandbox().from_string(source), variables)
    except (TemplateError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise PromptError(f"The model's chat template failed: {error}", "Try another model file.") from error
    except (RecursionError, MemoryError) as error:
        raise PromptError("The model's chat template wants too much.", "Try another model file.") from error


def _joined(template: Template, variables: dict[str, Any]) -> str:
    pieces: Iterable[str] = template.generate(variables)
    kept: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > OUTPUT_CHARS:
            raise PromptError("The model's chat template writes without end.", "Try another model file.")
        kept.append(piece)
    return "".join(kept)
