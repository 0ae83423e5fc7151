"""BinaryPack, PeerJS's encoding: MessagePack with strings and raw bytes swapped (spec: rooms §3)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from app.core.errors import ProtocolError

MAX_DEPTH = 32
MAX_OBJECTS = 65_536
"""Texts, byte strings, lists and maps in one message: a byte of message is up to 230 of memory for these."""
LOWEST_INTEGER = -(2**31)
"""JavaScript readers lose bits of negative 64-bit integers, so none is written."""


def pack(value: object) -> bytes:
    """The bytes of one value. Sequences become arrays, mappings maps; whole floats become integers.

    Raises ProtocolError for NaN, infinity, integers outside [-2**31, 2**64), NumPy scalars and anything
    else that has no form on the wire.
    """
    out = bytearray()
    _write(out, value, 0)
    return bytes(out)


def unpack(data: bytes) -> object:
    """The first value in ``data``; bytes after it are ignored, as PeerJS does.

    Raises ProtocolError when the value is cut short, nested deeper than 32, of more than 65,536 parts that are
    no numbers, or a map key is neither text nor a number. ``undefined`` and unknown types read as None.
    """
    return _Reader(data).value(0)


def _refuse(why: str) -> ProtocolError:
    return ProtocolError(f"A message cannot be encoded: {why}.")


def _write(out: bytearray, value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _refuse("it is nested too deeply")
    writer = _WRITERS.get(type(value))
    if writer is not None:
        writer(out, value)
    elif isinstance(value, Mapping):
        _write_map(out, cast("Mapping[object, object]", value), depth)
    elif isinstance(value, list | tuple):
        _write_array(out, cast("Sequence[object]", value), depth)
    else:
        raise _refuse(f"{type(value).__name__} has no form on the wire")


def _write_none(out: bytearray, _value: object) -> None:
    out.append(0xC0)


def _write_bool(out: bytearray, value: object) -> None:
    out.append(0xC3 if value else 0xC2)


_INTEGER_FORMS = (
    (0, 0xFF, 0xCC, ">BB"),
    (-0x80, 0x7F, 0xD0, ">Bb"),
    (0, 0xFFFF, 0xCD, ">BH"),
    (-0x8000, 0x7FFF, 0xD1, ">Bh"),
    (0, 0xFFFFFFFF, 0xCE, ">BI"),
    (LOWEST_INTEGER, 0x7FFFFFFF, 0xD2, ">Bi"),
    (0, 2**63 - 1, 0xD3, ">Bq"),
    (0, 2**64 - 1, 0xCF, ">BQ"),
)


def _write_int(out: bytearray, value: object) -> None:
    number = cast("int", value)
    if -32 <= number <= 127:
        out.append(number & 0xFF)
        return
    for low, high, code, form in _INTEGER_FORMS:
        if low <= number <= high:
            out += struct.pack(form, code, number)
            return
    raise _refuse(f"the integer {number} is out of range")


def _write_float(out: bytearray, value: object) -> None:
    number = cast("float", value)
    if not math.isfinite(number):
        raise _refuse("a number is not finite")
    if number.is_integer():
        # JavaScript's reader turns a float64 zero into 1.1e-308; whole numbers travel as integers.
        _write_int(out, int(number))
    else:
        out += struct.pack(">Bd", 0xCB, number)


def _write_str(out: bytearray, value: object) -> None:
    try:
        text = cast("str", value).encode()
    except UnicodeEncodeError as error:
        raise _refuse("a text holds half a character") from error
    _write_head(out, len(text), 0xB0, 0xD8)
    out += text


def _write_bytes(out: bytearray, value: object) -> None:
    raw = cast("bytes", value)
    _write_head(out, len(raw), 0xA0, 0xDA)
    out += raw


def _write_array(out: bytearray, items: Sequence[object], depth: int) -> None:
    _write_head(out, len(items), 0x90, 0xDC)
    for item in items:
        _write(out, item, depth + 1)


def _write_map(out: bytearray, members: Mapping[object, object], depth: int) -> None:
    _write_head(out, len(members), 0x80, 0xDE)
    for key, member in members.items():
        if not isinstance(key, str):
            raise _refuse("a map key is not text")
        _write_str(out, key)
        _write(out, member, depth + 1)


def _write_head(out: bytearray, length: int, short: int, wide: int) -> None:
    if length < 16:
        out.append(short | length)
    elif length <= 0xFFFF:
        out += struct.pack(">BH", wide, length)
    elif length <= 0xFFFFFFFF:
        out += struct.pack(">BI", wide + 1, length)
    else:
        raise _refuse("it is too long")


_WRITERS: dict[type, Callable[[bytearray, object], None]] = {
    type(None): _write_none,
    bool: _write_bool,
    int: _write_int,
    float: _write_float,
    str: _write_str,
    bytes: _write_bytes,
    bytearray: _write_bytes,
}

_NUMBERS = {
    0xCA: struct.Struct(">f"),
    0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"),
    0xCD: struct.Struct(">H"),
    0xCE: struct.Struct(">I"),
    0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"),
    0xD1: struct.Struct(">h"),
    0xD2: struct.Struct(">i"),
    0xD3: struct.Struct(">q"),
}
_CONSTANTS = {0xC2: False, 0xC3: True}


class _Reader:
    """Walks one byte string; every length is checked against what is left before anything is made."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._objects = 0

    def value(self, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise _malformed()
        code = self._take(1)[0]
        if code < 0x80:
            return code
        if code >= 0xE0:
            return code - 0x100
        if code < 0xC0:
            return self._sized(code & 0xF0, code & 0x0F, depth)
        if code >= 0xD8:
            length = int.from_bytes(self._take(4 if code & 1 else 2))
            return self._sized(_WIDE[code & 0xFE], length, depth)
        number = _NUMBERS.get(code)
        return self._number(number) if number else _CONSTANTS.get(code)

    def _sized(self, kind: int, length: int, depth: int) -> object:
        self._objects += 1
        if self._objects > MAX_OBJECTS:
            raise _malformed()
        if kind == 0x80:
            return self._map(length, depth)
        if kind == 0x90:
            return self._array(length, depth)
        raw = self._take(length)
        return raw if kind == 0xA0 else raw.decode(errors="replace")

    def _array(self, count: int, depth: int) -> list[object]:
        self._expect(count)
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[str, object]:
        self._expect(2 * count)
        members: dict[str, object] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            members[_key_text(key)] = self.value(depth + 1)
        return members

    def _number(self, form: struct.Struct) -> int | float:
        raw = self._take(form.size)
        return form.unpack(raw)[0]

    def _take(self, length: int) -> bytes:
        self._expect(length)
        start, self._at = self._at, self._at + length
        return self._data[start : self._at]

    def _expect(self, length: int) -> None:
        if length > len(self._data) - self._at:
            raise _malformed()


_WIDE = {0xD8: 0xB0, 0xDA: 0xA0, 0xDC: 0x90, 0xDE: 0x80}


def _key_text(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int | float) and not isinstance(key, bool):
        return str(key)
    raise _malformed()


def _malformed() -> ProtocolError:
    return ProtocolError("A message from another device is damaged.")
