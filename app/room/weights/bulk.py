"""Ranges of weight files over a connection of their own: a question, then blocks with their hashes.

A question is its length in four bytes and JSON. The answer is one byte, HERE or NOT_HERE, and after HERE blocks
in order: length in four bytes, SHA-256, data. All calls block; errors of the connection are LinkError.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import struct
import time
from collections.abc import Callable

import msgspec

from app.core.errors import FileError, LinkError
from app.models.gather import Put
from app.models.ranges import Span, pieces
from app.room.weights.pacer import Pacer
from app.room.weights.tls import is_pinned

BLOCK = 4 << 20
LONGEST_QUESTION = 8 << 10
MOST_ASKED = 1 << 30
CONNECT, IDLE, BETWEEN = 3.0, 15.0, 60.0
"""Seconds: to a connection; without a byte of an answer; without a question."""
HERE, NOT_HERE = b"\x01", b"\x00"
WRITE = 64 << 10
"""Bytes given to the system at once: small, so that a paced flow has no bursts."""

Read = Callable[[str, Span], bytes]
"""Bytes of a weight file by its name in the room; FileError when they are not here."""


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes ``lo`` up to, not including, ``hi``."""

    url: str
    lo: int
    hi: int


class BulkClient:
    """A connection to a device that lends. Calls one at a time; ``close`` from any thread ends the one that runs."""

    def __init__(self, address: str, port: int, context: ssl.SSLContext, fingerprint: str) -> None:
        """Raises LinkError when nobody is there, or it is somebody else."""
        self._block = memoryview(bytearray(BLOCK))
        try:
            raw = socket.create_connection((address, port), CONNECT)
        except OSError as error:
            raise LinkError("The other device could not be reached directly.") from error
        try:
            self._connection = context.wrap_socket(raw)
            self._connection.settimeout(IDLE)
        except OSError as error:
            raw.close()
            raise LinkError("The other device is not the one that was meant.") from error
        if not is_pinned(self._connection, [fingerprint]):
            self._connection.close()
            raise LinkError("The other device is not the one that was meant.")

    def fetch(self, url: str, span: Span, put: Put) -> None:
        """Raises LinkError when the device does not have the range, goes silent, or a block is damaged."""
        question = msgspec.json.encode(Question(url, span.lo, span.hi))
        try:
            self._connection.sendall(struct.pack(">I", len(question)) + question)
            if bytes(_receive(self._connection, 1)) != HERE:
                raise LinkError("The other device does not have these bytes.")
            self._blocks(span.size, put)
        except OSError as error:
            raise LinkError("The direct connection to the other device broke off.") from error

    def _blocks(self, left: int, put: Put) -> None:
        while left:
            (size,) = struct.unpack(">I", _receive(self._connection, 4))
            if not 0 < size <= min(BLOCK, left):
                raise LinkError("The other device sent more than was asked for.")
            expected = bytes(_receive(self._connection, 32))
            data = self._block[:size]
            _fill(self._connection, data)
            if hashlib.sha256(data).digest() != expected:
                raise LinkError("A block of weights arrived damaged.")
            put(data)
            left -= size

    def close(self) -> None:
        end(self._connection)


def serve(connection: ssl.SSLSocket, read: Read, pacer: Pacer) -> None:
    """Answers questions until the other end is done.

    Raises OSError when the connection breaks, FileError when bytes vanish midway, which only its end can say.
    """
    while (question := _question(connection)) is not None:
        blocks = pieces([Span(question.lo, question.hi)], BLOCK)
        first = _first(read, question.url, blocks)
        connection.sendall(NOT_HERE if first is None else HERE)
        if first is not None:
            _send_block(connection, first, pacer)
            for block in blocks[1:]:
                _send_block(connection, read(question.url, block), pacer)


def _first(read: Read, url: str, blocks: list[Span]) -> bytes | None:
    try:
        return read(url, blocks[0]) if blocks else None
    except FileError:
        return None


def _send_block(connection: ssl.SSLSocket, data: bytes, pacer: Pacer) -> None:
    connection.sendall(struct.pack(">I", len(data)) + hashlib.sha256(data).digest())
    rest = memoryview(data)
    while rest:
        part, rest = rest[:WRITE], rest[WRITE:]
        wait = pacer.delay(len(part))
        if wait > 0:
            time.sleep(wait)
        connection.sendall(part)


def _question(connection: ssl.SSLSocket) -> Question | None:
    """None when there is no other one, or none that makes sense."""
    connection.settimeout(BETWEEN)
    try:
        (size,) = struct.unpack(">I", _receive(connection, 4))
        connection.settimeout(IDLE)
        if size > LONGEST_QUESTION:
            return None
        question = msgspec.json.decode(bytes(_receive(connection, size)), type=Question)
        return question if 0 <= question.lo < question.hi <= question.lo + MOST_ASKED else None
    except (ConnectionError, TimeoutError, msgspec.MsgspecError):
        return None


def _receive(connection: ssl.SSLSocket, size: int) -> memoryview:
    view = memoryview(bytearray(size))
    _fill(connection, view)
    return view


def _fill(connection: ssl.SSLSocket, view: memoryview) -> None:
    """Exactly so many bytes; ConnectionError when the connection ends before."""
    got = 0
    while got < len(view):
        count = connection.recv_into(view[got:])
        if not count:
            raise ConnectionError("the connection ended")
        got += count


def end(connection: socket.socket) -> None:
    """Wakes whoever waits for the socket. An SSL socket's own shutdown would go on without encryption."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
