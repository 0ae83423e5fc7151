"""Keys and passes: in the system's key store where there is one, else in a file only its owner can read."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TypeVar, cast

import keyring
from keyring.errors import KeyringError

from app.core.files import private_folder, write_whole
from app.core.paths import data_dir

log = logging.getLogger(__name__)

SERVICE = "Pooled"
ENTRY = "secrets"
ANSWER_WITHIN = 3.0
MOST_PASSES = 20
"""Rooms whose passes are kept. All secrets are one entry, and the smallest key store takes 1,280 letters of it."""
LARGEST_VALUE = 200

_PASS = "pass "

T = TypeVar("T")


class Place(Enum):
    """Where secrets are; the value is how a person is told."""

    KEY_STORE = "the system's key store"
    FILE = "a file that only you can read"


class Secrets:
    """Names and values, all in memory once opened. A change is written by a thread of its own, in order.

    ``open_secrets`` makes one; nothing here waits for a key store, which may ask the person something.
    """

    def __init__(self, values: dict[str, str], place: Place) -> None:
        self._values = values
        self._place = place
        self._waiting: queue.SimpleQueue[dict[str, str] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="secrets writer", daemon=True)
        self._writer.start()

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)} in {self._place.value})"

    def where(self) -> Place:
        return self._place

    def get(self, name: str) -> str:
        """The value, or "" when there is none."""
        return self._values.get(name, "")

    def put(self, name: str, value: str) -> None:
        """Keeps a value; "" forgets it. One that is too long to be a key or password is not kept."""
        if len(value) > LARGEST_VALUE or self.get(name) == value:
            return
        self._values.pop(name, None)
        if value:
            self._values[name] = value
        self._waiting.put(dict(self._values))

    def passes(self) -> KeptPasses:
        """The passes of rooms this device was in."""
        return KeptPasses(self)

    def names(self) -> tuple[str, ...]:
        """In the order they were last changed, oldest first."""
        return tuple(self._values)

    def close(self) -> None:
        """Writes what still waits, for at most as long as a key store may take."""
        self._waiting.put(None)
        self._writer.join(ANSWER_WITHIN)

    def _write_all(self) -> None:
        while (values := self._waiting.get()) is not None:
            self._place = _save(values, self._place)


class KeptPasses:
    """Passes by room code, the oldest forgotten first."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def get(self, code: str) -> str:
        return self._secrets.get(_PASS + code)

    def put(self, code: str, text: str) -> None:
        self._secrets.put(_PASS + code, text)
        kept = [name for name in self._secrets.names() if name.startswith(_PASS)]
        for name in kept[:-MOST_PASSES]:
            self._secrets.put(name, "")


async def open_secrets() -> Secrets:
    """Reads everything once. A key store that is missing, locked or silent gives way to the file."""
    try:
        text = await asyncio.wait_for(_in_thread(_from_key_store, "key store"), ANSWER_WITHIN)
        return Secrets(_values(text), Place.KEY_STORE)
    except (KeyringError, RuntimeError, OSError, TimeoutError) as error:
        log.info("no key store: %s", error or "no answer")
    text = await _in_thread(lambda: _from_file(secrets_path()), "secrets file")
    return Secrets(_values(text), Place.FILE)


def secrets_path() -> Path:
    return data_dir() / "secrets" / "secrets.json"


def _from_key_store() -> str:
    backend = keyring.get_keyring()
    # Backends below 1 are those that store nothing, or store it in the open.
    if backend.priority < 1:
        raise RuntimeError("this system has none")
    return backend.get_password(SERVICE, ENTRY) or ""


def _from_file(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _values(text: str) -> dict[str, str]:
    """What can be read of saved secrets; the rest is dropped."""
    try:
        raw = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        log.warning("the saved secrets are damaged; rooms will ask to be let in again")
        return {}
    if not isinstance(raw, dict):
        return {}
    pairs = cast("dict[str, object]", raw).items()
    return {name: value for name, value in pairs if isinstance(value, str) and len(value) <= LARGEST_VALUE}


def _save(values: dict[str, str], place: Place) -> Place:
    text = json.dumps(values)
    if place is Place.KEY_STORE:
        try:
            keyring.set_password(SERVICE, ENTRY, text)
            return Place.KEY_STORE
        except (KeyringError, RuntimeError, OSError) as error:
            log.warning("the key store refused, a file is used instead: %s", type(error).__name__)
    try:
        write_whole(private_folder(secrets_path().parent) / secrets_path().name, text.encode())
    except OSError as error:
        log.warning("secrets could not be saved: %s", error.strerror)
    return Place.FILE


async def _in_thread(work: Callable[[], T], name: str) -> T:
    """Runs ``work`` in a daemon thread: one that a key store never answers must not hold the program's end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not done.done():
            set_outcome()

    def run() -> None:
        try:
            result = work()
        except (KeyringError, RuntimeError, OSError) as error:
            failure = error
            _tell(loop, lambda: settle(lambda: done.set_exception(failure)))
        else:
            _tell(loop, lambda: settle(lambda: done.set_result(result)))

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        log.debug("an answer came after the end")
