"""JSON from a client, bounded before it is built: depth, containers, odd numbers, half letters (RFC 8259)."""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn, cast

from app.serve.errors import bad

DEEPEST = 128
MOST_CONTAINERS = 200_000
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_STRING = re.compile(r'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)


def read_json(text: str) -> object:
    """The value a text holds. Raises ValueError for what is no JSON, ApiError for what is too deep or too much."""
    _check_count(text)
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise _too_deep() from error
    _check_depth(value)
    return value


def _check_count(text: str) -> None:
    """Before anything is built. Brackets inside strings are only told apart where there are many."""
    if _brackets(text) > MOST_CONTAINERS and _brackets(_STRING.sub("", text)) > MOST_CONTAINERS:
        raise bad(f"The JSON has more than {MOST_CONTAINERS} lists and objects.", "Send less at once.")


def _brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(digits)
    return value


def _check_depth(value: object) -> None:
    level = _containers([value])
    for _ in range(DEEPEST):
        level = [child for each in level for child in _containers(each)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> Exception:
    return bad(f"The JSON is nested deeper than {DEEPEST} levels.")


def _containers(value: object) -> list[object]:
    children = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
    return [child for child in children if isinstance(child, (dict, list))]
