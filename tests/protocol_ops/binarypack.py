"""Cases of ``binarypack.json``. Where JavaScript's own writer or reader is wrong, being right also holds."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from app.core.errors import ProtocolError
from app.room.binarypack import LOWEST_INTEGER, pack, unpack
from app.room.chunks import CLOSE_REQUEST, Assembler, Chunker
from tests.protocol_ops import Case, check
from tests.protocol_ops.values import decode, sha256

HELD_ONLY_BY_JAVASCRIPT = ("$date", "$other")
_STANDARD = {0xCA: ">f", 0xCB: ">d", 0xCF: ">Q", 0xD3: ">q"}


@check("binarypack", "pack")
def check_pack(case: Case) -> None:
    value = decode(case["in"])
    if _has_no_python_form(case) or _must_be_refused(value):
        with pytest.raises(ProtocolError):
            pack(object() if _has_no_python_form(case) else value)
    elif "error" in case["out"]:
        assert case["name"] in ("Map object", "symbol-free null proto", "DataView"), "an error only JavaScript has"
        assert unpack(pack(value)) == value
    elif pack(value).hex() != case["out"]["hex"]:
        assert isinstance(value, float), "only numbers may differ from the recorded bytes"
        assert unpack(pack(value)) == value
        assert decode(case["out"]["back"]) != value, "the recorded bytes were right"


def _has_no_python_form(case: Case) -> bool:
    return isinstance(case["in"], dict) and any(tag in case["in"] for tag in HELD_ONLY_BY_JAVASCRIPT)


def _must_be_refused(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    whole = math.isfinite(value) and float(value).is_integer()
    return not math.isfinite(value) or (whole and not LOWEST_INTEGER <= value < 2**64)


@check("binarypack", "unpack")
def check_unpack(case: Case) -> None:
    data = bytes.fromhex(case["in"]["hex"])
    try:
        value = unpack(data)
    except ProtocolError:
        assert "error" in case["out"] or case["name"].startswith(("truncated", "empty", "MessagePack fixstr"))
        return
    assert "error" not in case["out"], f"{value!r} was made of damaged bytes"
    if value != decode(case["out"]["value"]):
        _check_right_where_javascript_is_not(data, value)


def _check_right_where_javascript_is_not(data: bytes, value: Any) -> None:
    if data[0] in _STANDARD:
        standard = struct.unpack(_STANDARD[data[0]], data[1:])[0]
        assert value == standard or (math.isnan(value) and math.isnan(standard))
    else:
        assert 0xB0 <= data[0] <= 0xBF, "only numbers and bad UTF-8 may read differently"
        assert value == data[1:].decode(errors="replace")
        assert "\ufffd" in value


@check("binarypack", "send")
def check_send(case: Case) -> None:
    chunker = Chunker()
    if "sizes" in case["in"]:
        for size, sent in zip(case["in"]["sizes"], case["out"]["messages"], strict=True):
            _check_messages(chunker.messages(_sized(size)), sent)
    else:
        _check_messages(chunker.messages(_spelled_out(case["in"]["message"])), case["out"]["messages"])


def _sized(text: str) -> dict[str, Any]:
    kind, _, size = text.partition(" ")
    return {"t": "ping", "ts": 1} if kind == "ping" else _weight_part(_pattern(int(size)))


def _weight_part(data: bytes) -> dict[str, Any]:
    return {"t": "ai-wpart", "id": "p:1", "off": 0, "data": data}


def _spelled_out(message: dict[str, Any]) -> dict[str, Any]:
    return {name: _spelled(member) for name, member in message.items()}


def _spelled(member: Any) -> Any:
    if isinstance(member, dict) and "pattern" in member:
        return _pattern(member["n"])
    return member["repeat"] * member["n"] if isinstance(member, dict) and "repeat" in member else member


def _pattern(length: int, step: int = 31, start: int = 7) -> bytes:
    return bytes((step * index + start) % 256 for index in range(length))


def _check_messages(messages: list[bytes], recorded: list[dict[str, Any]]) -> None:
    assert [len(message) for message in messages] == [each["len"] for each in recorded]
    assert [message[:48].hex() for message in messages] == [each["head"] for each in recorded]
    assert [sha256(message) for message in messages] == [each["sha256"] for each in recorded]


_PATTERNS = {"a": (31, 7), "b": (13, 1)}


@check("binarypack", "receive")
def check_receive(case: Case) -> None:
    pieces = _fed_messages(case)
    assembler = Assembler()
    repeated = len(set(map(str, case["in"]["feed"]))) < len(case["in"]["feed"])
    delivered: list[Any] = []
    for fed, step in zip(case["in"]["feed"], case["out"]["steps"], strict=True):
        data = bytes.fromhex(fed) if isinstance(fed, str) else pieces[fed]
        try:
            got = assembler.feed(data)
        except ProtocolError:
            assert step.get("error"), f"piece {fed} was refused"
            continue
        delivered += [got] if got is not None and got is not CLOSE_REQUEST else []
        assert (got is CLOSE_REQUEST) == bool(step["closed"])
        if not repeated:
            assert _described(got) == step["delivered"]
    if repeated:
        assert [message["t"] for message in delivered] == [message["t"] for message in case["in"]["messages"]]


def _fed_messages(case: Case) -> list[bytes]:
    chunker = Chunker()
    return [
        piece
        for message in case["in"]["messages"]
        for piece in chunker.messages({"t": message["t"], "data": _pattern(message["n"], *_PATTERNS[message["t"]])})
    ]


def _described(got: Any) -> list[dict[str, Any]]:
    if got is None or got is CLOSE_REQUEST:
        return []
    if not isinstance(got, dict):
        raw = {"$bytes": got.hex(), "type": "ArrayBuffer"} if isinstance(got, bytes) else got
        return [{"t": None, "dataLen": None, "dataType": None, "dataSha256": None, "raw": raw}]
    data = got.get("data")
    size = (len(data), "Uint8Array", sha256(data)) if data is not None else (None, None, None)
    return [dict(zip(("t", "dataLen", "dataType", "dataSha256"), (got.get("t"), *size), strict=True))]
