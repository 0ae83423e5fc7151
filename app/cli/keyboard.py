"""Typed or piped lines without ever holding the event loop, or the program's end."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import threading
from concurrent.futures import CancelledError

LONGEST_LINE = 64 * 1024
MOST_WAITING = 1000


class Keyboard:
    """Lines of one file descriptor, in order; ``line`` gives None at its end.

    While ``by_key`` is set whatever was typed comes at once, by ``typed``.

    The thread reads the descriptor itself: one that waits inside ``sys.stdin`` holds a lock which the
    interpreter needs to end.
    """

    def __init__(self, descriptor: int) -> None:
        self.interactive = os.isatty(descriptor)
        self.descriptor = descriptor
        self.by_key = False
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(MOST_WAITING)
        threading.Thread(target=self._read, name="keyboard", daemon=True).start()

    async def line(self) -> str | None:
        return await self._lines.get()

    typed = line

    def _read(self) -> None:
        decoder, rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        while chunk := self._chunk():
            if self.by_key:
                self._hand_over(decoder.decode(chunk))
                continue
            *lines, rest = (rest + decoder.decode(chunk)).split("\n")
            for line in lines:
                self._hand_over(line[:LONGEST_LINE])
            rest = rest[:LONGEST_LINE]
        if rest:
            self._hand_over(rest)
        self._hand_over(None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self.descriptor, 4096)
        except OSError:
            return b""

    def _hand_over(self, line: str | None) -> None:
        """Waits while too many lines wait already, so that a large file in the pipe stays there."""
        put = self._lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(put, self._loop).result()
        except (RuntimeError, CancelledError):
            put.close()  # the loop has ended


def standard_input() -> int:
    """Its descriptor; an empty one where the program was started without any."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, ValueError, OSError):
        return os.open(os.devnull, os.O_RDONLY)
