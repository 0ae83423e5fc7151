"""This program as a process, at a terminal of its own or with pipes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.toy_room import WITHIN_S
from tests.room.loopback import until

ROOT = Path(__file__).parents[2]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def home_in(path: Path, *servers: str) -> Path:
    """A person's folder that asks no public server, but these."""
    (path / "settings.json").write_text(json.dumps({"name": "heron", "cloud": False, "signal": servers}))
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    taken = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "NO_COLOR", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if name not in taken}
    return {**kept, "POOLED_HOME": str(home), "TERM": "xterm-256color", "PYTHONUNBUFFERED": "1"} | more


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.cli.program", *arguments]


class AtTerminal:
    """The program under a terminal of ``columns``; ``said`` is what a person would read, without escapes."""

    def __init__(self, arguments: Sequence[str], home: Path, columns: int = 80, **more: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.raw = ""
        self._process = subprocess.Popen(
            command(*arguments),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env=environment(home, **more),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C then comes from the terminal itself
        )
        os.close(theirs)
        asyncio.get_running_loop().add_reader(self._ours, self._read)

    @property
    def said(self) -> str:
        return _ESCAPES.sub("", self.raw).replace("\r", "")

    def _read(self) -> None:
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:
            chunk = b""
        self.raw += chunk.decode(errors="replace")
        if not chunk:
            asyncio.get_running_loop().remove_reader(self._ours)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    async def shows(self, text: str, times: int = 1) -> None:
        with contextlib.suppress(TimeoutError):
            await until(lambda: self.said.count(text) >= times or self._process.poll() is not None, WITHIN_S)
        assert self.said.count(text) >= times, self.said

    async def ends(self) -> int:
        await until(lambda: self._process.poll() is not None, WITHIN_S)
        self._read()
        assert self._process.returncode is not None
        return self._process.returncode

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        asyncio.get_running_loop().remove_reader(self._ours)
        os.close(self._ours)


@asynccontextmanager
async def at_terminal(*arguments: str, home: Path, columns: int = 80, **more: str) -> AsyncIterator[AtTerminal]:
    terminal = AtTerminal(arguments, home, columns, **more)
    try:
        yield terminal
    finally:
        terminal.close()
