"""A bounded reader over the start of a file: no length is believed before the bytes are there."""

from __future__ import annotations

import struct
from typing import BinaryIO

from app.core.errors import FileError


class Cursor:
    """Reads little-endian values in order; ``size`` is the whole file's length in bytes."""

    def __init__(self, stream: BinaryIO, size: int, name: str) -> None:
        self._stream = stream
        self._size = size
        self.name = name
        self.position = 0

    @property
    def left(self) -> int:
        return self._size - self.position

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise self.damaged(f"it promises {count} bytes where {self.left} are left")
        data = self._stream.read(count)
        if len(data) != count:
            raise self.damaged("it ends in the middle of its header")
        self.position += count
        return data

    def skip(self, count: int) -> None:
        if count > self.left:
            raise self.damaged(f"it promises {count} bytes where {self.left} are left")
        self._stream.seek(count, 1)
        self.position += count

    def number(self, form: str) -> int | float:
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def u32(self) -> int:
        return int(self.number("I"))

    def u64(self) -> int:
        return int(self.number("Q"))

    def text(self, limit: int) -> str:
        length = self.u64()
        if length > limit:
            raise self.damaged(f"it holds a text of {length} bytes, more than the {limit} allowed")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.damaged("one of its texts is not UTF-8") from None

    def damaged(self, why: str) -> FileError:
        return FileError(f"{self.name} is not a usable GGUF file: {why}.", "Download the file again.")
