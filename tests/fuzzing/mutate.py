"""Damaged copies of valid samples, and BinaryPack values that no writer would make."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

LONGEST = 1 << 16
MOST_CHANGES = 8
DEEPEST = 6

_EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
_TEXTS = ("nan", "inf", "-1", "1e999", "9" * 400, "", "\x1b[2J", "\u202egnp", "\ud7ff", "0" * 64, "host", "toString")
_FLOATS = (0.5, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 2.0**53, 0.1)


def damaged(rng: Random, corpus: Sequence[bytes]) -> bytes:
    """One sample with one to eight changes."""
    data = bytearray(rng.choice(corpus))
    for _ in range(1 + min(int(rng.expovariate(0.8)), MOST_CHANGES - 1)):
        rng.choice(_CHANGES)(rng, data, corpus)
    return bytes(data[:LONGEST])


def _at(rng: Random, data: bytearray) -> int:
    return rng.randrange(len(data)) if data else 0


def _flip(rng: Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    if data:
        data[_at(rng, data)] ^= 1 << rng.randrange(8)


def _replace(rng: Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    if data:
        data[_at(rng, data)] = rng.getrandbits(8)


def _insert(rng: Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    at = _at(rng, data)
    data[at:at] = rng.randbytes(1 + rng.randrange(8))


def _remove(rng: Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    at = _at(rng, data)
    del data[at : at + 1 + rng.randrange(16)]


def _cut(rng: Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    del data[_at(rng, data) :]


def _repeat(rng: Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    start = _at(rng, data)
    data[start:start] = data[start : start + 1 + rng.randrange(64)] * (1 + rng.randrange(4))


def _edge(rng: Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    """A number on the brink, at any place, in either byte order."""
    width, at = rng.choice((1, 2, 4, 8)), _at(rng, data)
    value = rng.choice(_EDGES) & (2 ** (8 * width) - 1)
    data[at : at + width] = value.to_bytes(width, rng.choice(("big", "little")))


def _splice(rng: Random, data: bytearray, corpus: Sequence[bytes]) -> None:
    other, at = rng.choice(corpus), _at(rng, data)
    start = rng.randrange(len(other)) if other else 0
    data[at:] = other[start:]


_CHANGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip, _replace, _insert, _remove, _cut, _repeat, _edge, _splice,
)  # fmt: skip


def packed(rng: Random, words: Sequence[str], depth: int = 0) -> bytes:
    """Any well-formed BinaryPack value, also those our own writer refuses. ``words`` are likely texts and keys."""
    return rng.choice(_WHOLE if depth >= DEEPEST else _KINDS)(rng, words, depth)


def packed_map(rng: Random, words: Sequence[str], members: dict[str, bytes], depth: int = 0) -> bytes:
    """A map of ``members``, and of a few more."""
    more = {rng.choice(words): packed(rng, words, depth + 1) for _ in range(rng.randrange(3))}
    every = {**more, **members}
    return head(len(every), 0x80, 0xDE) + b"".join(text(name) + value for name, value in every.items())


def head(count: int, short: int, wide: int) -> bytes:
    return bytes([short | count]) if count < 16 else struct.pack(">BH", wide, count)


def text(value: str) -> bytes:
    raw = value.encode()
    return head(len(raw), 0xB0, 0xD8) + raw


def _number(rng: Random, _words: Sequence[str], _depth: int) -> bytes:
    form, code = rng.choice(((">B", 0xCC), (">H", 0xCD), (">I", 0xCE), (">Q", 0xCF)))
    value = rng.choice(_EDGES) if rng.random() < 0.5 else rng.getrandbits(64)
    return bytes([code + rng.choice((0, 4))]) + struct.pack(form, value & (2 ** (8 * struct.calcsize(form)) - 1))


def _small(rng: Random, _words: Sequence[str], _depth: int) -> bytes:
    return bytes([rng.randrange(0x80)])


def _float(rng: Random, _words: Sequence[str], _depth: int) -> bytes:
    return b"\xcb" + struct.pack(">d", rng.choice(_FLOATS) if rng.random() < 0.7 else rng.gauss(0, 1e6))


def _constant(rng: Random, _words: Sequence[str], _depth: int) -> bytes:
    return bytes([rng.randrange(0xC0, 0xCA)])


def _text(rng: Random, words: Sequence[str], _depth: int) -> bytes:
    if rng.random() < 0.1:
        return head(40, 0xB0, 0xD8) + rng.randbytes(40)
    return text(rng.choice(words) if rng.random() < 0.6 else rng.choice(_TEXTS))


def _raw(rng: Random, _words: Sequence[str], _depth: int) -> bytes:
    raw = rng.randbytes(rng.choice((0, 1, 2, 16, 300)))
    return head(len(raw), 0xA0, 0xDA) + raw


def _list(rng: Random, words: Sequence[str], depth: int) -> bytes:
    count = rng.randrange(5)
    return head(count, 0x90, 0xDC) + b"".join(packed(rng, words, depth + 1) for _ in range(count))


def _map(rng: Random, words: Sequence[str], depth: int) -> bytes:
    return packed_map(rng, words, {}, depth)


_WHOLE = (_number, _small, _float, _constant, _text, _raw)
_KINDS = (*_WHOLE, _small, _text, _list, _map)
