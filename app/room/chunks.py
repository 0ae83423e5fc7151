"""Long control messages in pieces, both ways (spec: rooms §3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeGuard, cast

from app.core.errors import ProtocolError
from app.room.binarypack import pack, unpack

PIECE = 16_300
MAX_PIECES = 256
MAX_OPEN_MESSAGES = 8


class Chunker:
    """Turns values into the data-channel messages that carry them; numbers long ones from 1."""

    def __init__(self) -> None:
        self._last_number = 0

    def messages(self, value: object) -> list[bytes]:
        """One message, or several of at most about 16.4 KB. Raises ProtocolError as ``pack`` does."""
        packed = pack(value)
        if len(packed) <= PIECE:
            return [packed]
        self._last_number += 1
        return _pieces(packed, self._last_number)


def _pieces(packed: bytes, number: int) -> list[bytes]:
    total = -(-len(packed) // PIECE)
    if total > MAX_PIECES:
        raise ProtocolError("A message is too long to send.")
    return [
        pack({"__peerData": number, "n": n, "data": packed[n * PIECE : (n + 1) * PIECE], "total": total})
        for n in range(total)
    ]


class CloseRequest:
    """The peer asked for this connection to be closed."""


CLOSE_REQUEST: Final = CloseRequest()


@dataclass
class _Partial:
    total: int
    pieces: dict[int, bytes] = field(default_factory=dict[int, bytes])


class Assembler:
    """Joins pieces again. Holds at most eight unfinished messages of ``most_pieces``; 0 takes no pieces."""

    def __init__(self, most_pieces: int = MAX_PIECES) -> None:
        self.most_pieces = most_pieces
        self._open: dict[int, _Partial] = {}

    @property
    def unfinished(self) -> int:
        """How many messages have pieces missing."""
        return len(self._open)

    def feed(self, data: bytes) -> object:
        """The value that ``data`` completes, CLOSE_REQUEST, or None while pieces are missing.

        Raises ProtocolError for a damaged message and for a bare null.
        """
        value = unpack(data)
        if value is None:
            raise ProtocolError("A message from another device is empty.")
        if not isinstance(value, Mapping):
            return value
        members = cast("Mapping[str, object]", value)
        marker = members.get("__peerData")
        if isinstance(marker, Mapping):
            return CLOSE_REQUEST if cast("Mapping[str, object]", marker).get("type") == "close" else None
        return self._piece(marker, members) if marker else members

    def _piece(self, number: object, members: Mapping[str, object]) -> object:
        n, total, data = members.get("n"), members.get("total"), members.get("data")
        if not (_is_count(number) and _is_count(n) and _is_count(total) and isinstance(data, bytes)):
            return None
        if not (1 <= total <= self.most_pieces and 0 <= n < total and len(data) <= PIECE):
            return None
        return self._add(number, n, total, data)

    def _add(self, number: int, n: int, total: int, data: bytes) -> object:
        partial = self._open.get(number)
        if partial is None:
            if len(self._open) >= MAX_OPEN_MESSAGES:
                return None
            partial = self._open[number] = _Partial(total)
        if partial.total != total:
            return None
        partial.pieces.setdefault(n, data)
        if len(partial.pieces) < total:
            return None
        del self._open[number]
        return unpack(b"".join(partial.pieces[index] for index in range(total)))


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int
