"""Cases of ``codes.json``."""

from __future__ import annotations

from typing import Any

from app.room.codes import (
    code_from_location,
    format_code,
    key_fragment,
    key_from_fragment,
    parse_code,
    random_code,
)
from tests.protocol_ops import Case, check


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, dict) else str(value)


@check("codes", "parse")
def check_parse(case: Case) -> None:
    code = parse_code(_text(case["in"]))
    assert {"code": code, "accepted": bool(code), "shown": format_code(code)} == case["out"]


@check("codes", "format")
def check_format(case: Case) -> None:
    assert format_code(_text(case["in"])) == case["out"]


@check("codes", "location")
def check_location(case: Case) -> None:
    place = case["in"]
    assert code_from_location(place["pathname"], place["search"], place["hash"]) == case["out"]


@check("codes", "key_from_hash")
def check_key_from_hash(case: Case) -> None:
    assert key_from_fragment(_text(case["in"])) == case["out"]


@check("codes", "key_fragment")
def check_key_fragment(case: Case) -> None:
    assert key_fragment(_text(case["in"])) == case["out"]


_STREAMS = {
    "0,1,2,...": lambda i: i % 256,
    "255,254,253,...": lambda i: 255 - i % 256,
    "239,240,239,240,...": lambda i: 239 + i % 2,
    "37 i + 11": lambda i: (37 * i + 11) % 256,
}


@check("codes", "random_code")
def check_random_code(case: Case) -> None:
    byte_at, drawn, at = _STREAMS[case["in"]["bytes"]], [], 0

    def draw(count: int) -> bytes:
        nonlocal at
        drawn.append(count)
        at += count
        return bytes(byte_at(index) for index in range(at - count, at))

    assert random_code(case["in"]["n"], draw) == case["out"]["code"]
    assert drawn == case["out"]["drawn"]
