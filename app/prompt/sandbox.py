"""The sandbox a model file's template runs in: it reads a conversation, and cannot reach or exhaust anything.

A template comes with a downloaded file, so it is treated as hostile: no attribute of Python's own objects, and
every loop, call and text that could grow is paid from one budget, so that a rendering ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from types import CodeType
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.core.errors import PromptError

SOURCE_CHARS = 128 * 1024
OUTPUT_CHARS = 8_000_000
VALUE_CHARS = 4_000_000
BUDGET_STEPS = 100_000
BUDGET_CHARS = 32_000_000
UNSAFE_FILTERS = frozenset({"center", "indent", "wordwrap", "format", "filesizeformat", "pprint", "xmlattr"})
UNSAFE_METHODS = frozenset(
    {"format", "format_map", "ljust", "rjust", "center", "zfill", "expandtabs", "translate", "join", "replace"}
)
GUARDED = frozenset({"*", "**", "+", "%"})


class Budget:
    """What one rendering may use: ``steps`` of loops and calls, ``chars`` of text made on the way."""

    def __init__(self) -> None:
        self._steps = BUDGET_STEPS
        self._chars = BUDGET_CHARS

    def spend(self, steps: int = 0, chars: int = 0) -> None:
        """Raises SecurityError when it is used up, before the work is done."""
        self._steps -= steps
        self._chars -= chars
        if self._steps < 0 or self._chars < 0 or chars > VALUE_CHARS:
            raise SecurityError("The template wants too much.")

    def counted(self, items: Iterable[Any]) -> Sequence[Any]:
        """What a loop runs over, paid in advance."""
        found = items if isinstance(items, (list, tuple, str, range)) else list(items)
        self.spend(steps=len(found) + 1)
        return found

    def range(self, *bounds: int) -> range:
        steps = range(*bounds)
        self.spend(steps=len(steps))
        return steps

    def joined(self, parts: Iterable[Any], between: object = "") -> str:
        texts = [str(part) for part in self.counted(parts)]
        gap = str(between)
        self.spend(chars=sum(map(len, texts)) + len(gap) * len(texts))
        return gap.join(texts)

    def replaced(self, value: object, old: str, new: str, count: int = -1) -> str:
        text = str(value)
        self.spend(chars=len(text) + text.count(old) * len(new))
        return text.replace(old, new, count)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Good for one rendering: its budget is used up by it. ``in_json`` ends what is dumped as JSON."""

    intercepted_binops = GUARDED

    def __init__(self, in_json: Callable[[str], str] = str) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        self._budget = budget = Budget()
        self._in_json = in_json
        self.filters = {name: f for name, f in self.filters.items() if name not in UNSAFE_FILTERS}
        self.filters |= {
            "tojson": self._dumped,
            "counted": budget.counted,
            "concatenated": budget.joined,
            "join": budget.joined,
            "replace": budget.replaced,
        }
        self.globals = {
            "range": budget.range,
            "namespace": self.globals["namespace"],
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }

    def read(self, source: str) -> Template:
        """The template with every loop and joined text led through the budget."""
        code = _compiled(source)
        return Template.from_code(self, code, self.make_globals(None))

    def call(self, context: Any, obj: Any, *arguments: Any, **named: Any) -> Any:
        """Every call of a template, macros included, comes through here."""
        self._budget.spend(steps=1)
        name, owner = getattr(obj, "__name__", ""), getattr(obj, "__self__", None)
        if isinstance(owner, str) and name in UNSAFE_METHODS:
            return self._text_method(owner, name, arguments)
        return super().call(context, obj, *arguments, **named)

    def _text_method(self, text: str, name: str, arguments: tuple[Any, ...]) -> str:
        if name == "join" and len(arguments) == 1:
            return self._budget.joined(arguments[0], text)
        if name == "replace" and len(arguments) in (2, 3):
            return self._budget.replaced(text, *arguments)
        raise SecurityError(f"The method {name} is not allowed here.")

    def _dumped(self, value: Any, indent: int | None = None, **more: Any) -> str:
        return self._in_json(_tojson(value, indent, **more))

    def wrap_str_format(self, value: Any) -> None:
        """Jinja's own guarded ``format`` still pads without bound; what is left falls to ``call``."""

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or (operator == "%" and isinstance(left, str)):
            raise SecurityError(f"The operator {operator} is not allowed here.")
        if operator == "*":
            self._budget.spend(chars=_sized(left) * _sized(right) if _grows(left) or _grows(right) else 0)
        if operator == "+" and _grows(left):
            self._budget.spend(chars=len(left) + _sized(right))
        return super().call_binop(context, operator, left, right)


@lru_cache(maxsize=4)
def _compiled(source: str) -> CodeType:
    """Compiling takes longer than most renderings."""
    sandbox = TemplateSandbox()
    return sandbox.compile(_paid(sandbox.parse(source)))


def _paid(template: nodes.Template) -> nodes.Template:
    for loop in template.find_all(nodes.For):
        loop.iter = _filtered(loop.iter, "counted")
    for parent in list(template.find_all(nodes.Node)):
        for field, value in list(parent.iter_fields()):
            if isinstance(value, list):
                value[:] = [_joined_text(item) for item in value]
            else:
                setattr(parent, field, _joined_text(value))
    template.set_lineno(1)
    return template


def _joined_text(value: Any) -> Any:
    return _filtered(nodes.List(value.nodes), "concatenated") if isinstance(value, nodes.Concat) else value


def _filtered(value: Any, name: str) -> nodes.Filter:
    return nodes.Filter(value, name, [], [], None, None)


def _grows(value: Any) -> bool:
    return isinstance(value, (str, list, tuple))


def _sized(value: Any) -> int:
    if isinstance(value, (str, list, tuple)):
        return len(value)
    return abs(int(value)) if isinstance(value, (int, float)) else 1


def _tojson(
    value: Any,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
    ensure_ascii: bool = False,
) -> str:
    """``ensure_ascii`` is not obeyed: it would break what stands for the words of people."""
    return json.dumps(
        value,
        ensure_ascii=False,
        indent=min(indent, 8) if indent else None,
        separators=(separators[0][:8], separators[1][:8]) if separators else None,
        sort_keys=sort_keys,
    )


def _raise_exception(message: object) -> NoReturn:
    raise TemplateError(str(message)[:200])


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form[:100])


def render_bounded(source: str, variables: dict[str, Any], in_json: Callable[[str], str] = str) -> str:
    """Raises PromptError for a template that is damaged, refuses the conversation or wants too much.

    ``in_json`` is led over every text that the template dumps as JSON.
    """
    if len(source) > SOURCE_CHARS:
        raise PromptError("The model's chat template is too long.", "Get the model file again.")
    try:
        return _joined(TemplateSandbox(in_json).read(source), variables)
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
