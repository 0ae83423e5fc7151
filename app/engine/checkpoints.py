"""Copies of computed conversations on disk: whole and hashed, or missing, never stale (spec: rooms §15.3).

A file is four magic bytes, the header's length (u32, big-endian), the header as JSON, a note of the caller's,
then the state's bytes. Its name has the room, the signature and the copy's own name, hashed; the header has
them in full. Files are their owner's alone: a conversation can be read out of its state.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.core.files import PRIVATE_FILE, private_folder

log = logging.getLogger(__name__)

MAGIC = b"PKC1"
VERSION = 1
CAP = 4 << 30
LARGEST_HEADER = 1 << 16
STALE_SECONDS = 600.0
ENDING, PART = ".ckpt", ".part"

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class CopyKey:
    """Which copy: a room's code, the copy's name in it, and the signature of the engine whose state it is."""

    room: str
    name: str
    signature: str

    @property
    def file_name(self) -> str:
        return ".".join((_short(self.room), _short(self.signature), _short(self.name))) + ENDING


@dataclass(frozen=True)
class Copy:
    """A conversation's state below position ``end``. ``note`` is whatever its keeper wants to know again."""

    end: int
    data: Bytes
    note: bytes = b""
    ids_hash: str = ""


class Header(msgspec.Struct, frozen=True):
    """``hash`` is blake2b over note and data; ``ids_hash`` names the token ids, where the keeper knows them."""

    version: int
    room: str
    name: str
    signature: str
    end: int
    note_bytes: int
    data_bytes: int
    hash: str
    ids_hash: str
    written: float


def hash_ids(ids: Sequence[int]) -> str:
    return blake2b(np.asarray(ids, "<u4").tobytes(), digest_size=32).hexdigest()


class CheckpointStore:
    """A folder of copies of at most ``cap`` bytes. No method raises: what fails is missing, and logged once."""

    def __init__(self, folder: Path, cap: int = CAP) -> None:
        self._folder = folder
        self._cap = cap

    def write(self, key: CopyKey, copy: Copy) -> bool:
        """Replaces the copy of this key, oldest ones making room, other rooms' first; False: it is missing now."""
        path = self._folder / key.file_name
        content = _content(key, copy)
        size = sum(len(part) for part in content)
        try:
            private_folder(self._folder)
            self._remove_stale()
            path.unlink(missing_ok=True)
            if not self._make_room(size, key.room, self._cap):
                return _missing(key, "it is larger than the space kept for copies")
            self._write(path, content, key.room)
        except OSError as error:
            return _missing(key, error.strerror or str(error))
        return True

    def _write(self, path: Path, content: list[memoryview], room: str) -> None:
        """A full disk gets a second try with the oldest copies gone."""
        try:
            _write_whole(path, content)
        except OSError as error:
            held = sum(size for _, size, _ in self._files())
            needed = sum(len(part) for part in content)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not held:
                raise
            self._make_room(0, room, max(held - needed, 0))
            _write_whole(path, content)

    def read(self, key: CopyKey) -> Copy | None:
        """None when there is none; one that is not whole is removed."""
        path = self._folder / key.file_name
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _missing(key, error.strerror or str(error))
            return None
        copy = _parsed(key, content)
        if copy is None:
            _missing(key, "its file is damaged")
            self._unlink(path)
        return copy

    def names(self, room: str, signature: str) -> list[str]:
        """Names of a room's copies that fit an engine, newest first."""
        start = f"{_short(room)}.{_short(signature)}."
        found = [(written, header.name) for path, _, written in self._files()
                 if path.name.startswith(start) and (header := _header(path)) is not None]  # fmt: skip
        return [name for _, name in sorted(found, reverse=True)]

    def drop(self, key: CopyKey) -> None:
        self._unlink(self._folder / key.file_name)

    def drop_room(self, room: str) -> None:
        """Forgets everything of a room, whatever engine made it."""
        for path, _, _ in self._files():
            if path.name.startswith(_short(room) + "."):
                self._unlink(path)

    def _make_room(self, size: int, room: str, cap: int) -> bool:
        if size > cap:
            return False
        own = _short(room) + "."
        files = sorted(self._files(), key=lambda file: (file[0].name.startswith(own), file[2]))
        used = sum(size for _, size, _ in files)
        while files and used + size > cap:
            path, freed, _ = files.pop(0)
            self._unlink(path)
            used -= freed
        return used + size <= cap

    def _files(self) -> list[tuple[Path, int, float]]:
        """Path, bytes and time of every copy."""
        found: list[tuple[Path, int, float]] = []
        try:
            for entry in os.scandir(self._folder):
                if entry.name.endswith(ENDING):
                    status = entry.stat()
                    found.append((Path(entry.path), status.st_size, status.st_mtime_ns / 1e9))
        except OSError:
            return found
        return found

    def _remove_stale(self) -> None:
        """What a program that ended midway has left."""
        for path in self._folder.glob(f"*{PART}"):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                self._unlink(path)

    def _unlink(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("a saved conversation cannot be removed: %s", error.strerror)


def _short(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _missing(key: CopyKey, why: str) -> bool:
    log.warning("the copy %s of a saved conversation is missing: %s", key.name, why)
    return False


def _content(key: CopyKey, copy: Copy) -> list[memoryview]:
    data = np.ascontiguousarray(copy.data).data
    header = Header(
        VERSION, key.room, key.name, key.signature, copy.end, len(copy.note), len(data),
        _hash(copy.end, copy.ids_hash, copy.note, data), copy.ids_hash, time.time(),
    )  # fmt: skip
    text = msgspec.json.encode(header)
    return [memoryview(MAGIC + len(text).to_bytes(4, "big") + text + copy.note), data]


def _hash(end: int, ids_hash: str, note: bytes | memoryview, data: memoryview) -> str:
    digest = blake2b(f"{end} {ids_hash} {len(note)} ".encode(), digest_size=32)
    digest.update(note)
    digest.update(data)
    return digest.hexdigest()


def _write_whole(path: Path, content: list[memoryview]) -> None:
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        with open(descriptor, "wb") as stream:
            for piece in content:
                stream.write(piece)
            stream.flush()
            os.fsync(descriptor)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _header(path: Path) -> Header | None:
    try:
        with path.open("rb") as stream:
            return _read_header(stream.read(8 + LARGEST_HEADER))
    except OSError:
        return None


def _read_header(content: bytes) -> Header | None:
    length = int.from_bytes(content[4:8], "big")
    if content[:4] != MAGIC or length > LARGEST_HEADER:
        return None
    try:
        return msgspec.json.decode(content[8 : 8 + length], type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _parsed(key: CopyKey, content: bytes) -> Copy | None:
    header = _read_header(content[: 8 + LARGEST_HEADER])
    if header is None or header.version != VERSION:
        return None
    if (header.room, header.name, header.signature) != (key.room, key.name, key.signature):
        return None
    start = 8 + int.from_bytes(content[4:8], "big")
    middle = start + header.note_bytes
    note, data = memoryview(content)[start:middle], memoryview(content)[middle:]
    if len(data) != header.data_bytes or _hash(header.end, header.ids_hash, note, data) != header.hash:
        return None
    return Copy(header.end, np.frombuffer(data, np.uint8), bytes(note), header.ids_hash)
