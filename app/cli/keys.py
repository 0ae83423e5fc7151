"""Single keys of a terminal, by name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_SEQUENCES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape", "\x04": "end",
}  # fmt: skip
_ONE_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


def keys_of(typed: str) -> list[str]:
    """Names of keys, and characters as they are; what has no name is left out."""
    keys: list[str] = _ONE_KEY.findall(typed)
    return [name for key in keys if (name := _SEQUENCES.get(key, key)).isprintable()]


def has_single_keys() -> bool:
    """Whether this system can give keys before Enter; Windows' console speaks otherwise."""
    return _module("termios") is not None


@contextmanager
def single_keys(descriptor: int) -> Generator[None]:
    """Keys come at once and are not echoed. Ctrl-C stays what it is."""
    termios, tty = _module("termios"), _module("tty")
    if termios is None or tty is None:
        yield
        return
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
