"""A model file of which only some ranges are there: full length, sparse, with a note beside it of what is good."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from app.core.errors import FileError, LinkError
from app.core.files import write_whole
from app.models.disk import unwritable
from app.models.ranges import RangeSet, Span

KEEP_EVERY = 64 << 20
"""After how many bytes a range that is still coming in is flushed and noted."""
KEEP_WITHIN = 5.0
"""After how many seconds it is, however slowly it comes."""


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``good`` has been flushed to the disk; ``lent`` of it came from other devices, without a hash of the source.

    ``versions``: which version of the file each source had, in its own words.
    """

    bytes: int
    sha256: str
    good: tuple[tuple[int, int], ...] = ()
    lent: tuple[tuple[int, int], ...] = ()
    versions: dict[str, str] = {}


@dataclass(frozen=True)
class _Kept:
    """A note as it is used."""

    good: RangeSet = field(default_factory=RangeSet)
    lent: RangeSet = field(default_factory=RangeSet)
    versions: Mapping[str, str] = field(default_factory=dict[str, str])


class PartialFile:
    """Ranges are noted only after they have been flushed, so what the note says survives any end of the program."""

    def __init__(self, path: Path, size: int, sha256: str) -> None:
        self.path = path
        self.size = size
        self._sha256 = sha256
        self._lock = threading.Lock()
        kept = _read_note(path, size, sha256)
        self.good, self.lent, self._versions = kept.good, kept.lent, dict(kept.versions)
        self._given_up: set[str] = set()
        """Versions that answers which were on their way longest may still be of."""
        self.beginnings = 0
        """How often all that was there was found to be of another version."""

    @property
    def whole(self) -> bool:
        return self.good.covers(Span(0, self.size))

    def create(self) -> None:
        """Makes the file at its full length if it is not there; FileError when the disk refuses."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as stream:
                stream.truncate(self.size)
        except OSError as error:
            raise unwritable(self.path.name, error) from error

    def keep(self, span: Span, *, lent: bool, beginning: int = 0) -> None:
        """Notes a range that has been flushed, unless it is of a version that was given up meanwhile."""
        with self._lock:
            if beginning != self.beginnings:
                return
            self.good |= RangeSet((span,))
            self.lent = self.lent | RangeSet((span,)) if lent else self.lent - RangeSet((span,))
            self._write_note()

    def doubt_lent(self) -> None:
        """What other devices gave does not count any more."""
        with self._lock:
            self.good, self.lent = self.good - self.lent, RangeSet()
            self._write_note()

    def is_of(self, source: str, version: str) -> bool:
        """Whether what is there is of the version that a source has now; if not, it is forgotten.

        Who names no version ("") is believed, and so is the first word of a source.
        """
        with self._lock:
            before = self._versions.get(source)
            if not version or before == version:
                return True
            if version in self._given_up:
                return False
            if before is not None:
                self._given_up.add(before)
                self.good, self.lent, self._versions = RangeSet(), RangeSet(), {}
                self.beginnings += 1
            self._versions[source] = version
            if self.path.exists():
                self._write_note()
            return before is None

    def move_to(self, target: Path) -> None:
        """Gives the whole file its name."""
        self.path.replace(target)
        note_of(self.path).unlink(missing_ok=True)

    def _write_note(self) -> None:
        good, lent = (tuple((s.lo, s.hi) for s in ranges.spans) for ranges in (self.good, self.lent))
        note = _Note(self.size, self._sha256, good, lent, self._versions)
        try:
            write_whole(note_of(self.path), msgspec.json.encode(note))
        except OSError as error:
            raise unwritable(self.path.name, error) from error


def forget(path: Path) -> None:
    """Deletes a partial file and its note, the note first."""
    note_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def note_of(path: Path) -> Path:
    return path.with_name(path.name + ".ranges")


def good_ranges(path: Path, size: int, sha256: str) -> RangeSet:
    """What is there of a partial file just now; nothing when there is none."""
    return _read_note(path, size, sha256).good


def lent_ranges(path: Path, size: int, sha256: str) -> RangeSet:
    """What of it other devices gave."""
    return _read_note(path, size, sha256).lent


def _read_note(path: Path, size: int, sha256: str) -> _Kept:
    """Empty where the note is damaged, of another file, or its file is gone."""
    try:
        note = msgspec.json.decode(note_of(path).read_bytes(), type=_Note)
        there = path.stat().st_size
    except (OSError, msgspec.MsgspecError):
        return _Kept()
    if (note.bytes, note.sha256, there) != (size, sha256, size):
        return _Kept()
    good, lent = (RangeSet.of(Span(lo, hi) for lo, hi in ranges if lo >= 0) for ranges in (note.good, note.lent))
    return _Kept(good, lent, note.versions) if not good.spans or good.spans[-1].hi <= size else _Kept()


class Filling:
    """Takes the bytes of one span in order, from any thread; what came before an error stays."""

    def __init__(self, file: PartialFile, span: Span, *, lent: bool) -> None:
        self._file = file
        self._span = span
        self._lent = lent
        self._lock = threading.Lock()
        self._at = self._kept = span.lo
        self._kept_at = time.monotonic()
        self._beginning = file.beginnings
        try:
            self._stream = file.path.open("r+b", buffering=0)
        except OSError as error:
            raise unwritable(file.path.name, error) from error
        self._stream.seek(span.lo)

    @property
    def complete(self) -> bool:
        return self._at == self._span.hi

    def put(self, data: bytes | memoryview) -> None:
        """Raises LinkError for more bytes than the span has, FileError when the disk is full."""
        with self._lock:
            if self._stream.closed or self._at + len(data) > self._span.hi:
                raise LinkError("More bytes came than were asked for.", "Try again.")
            self._write(memoryview(data))
            if self._at - self._kept >= KEEP_EVERY or time.monotonic() - self._kept_at >= KEEP_WITHIN:
                self._keep()

    def _write(self, rest: memoryview) -> None:
        while rest:
            try:
                count = self._stream.write(rest) or 0
            except OSError as error:
                raise unwritable(self._file.path.name, error) from error
            self._at += count
            rest = rest[count:]

    def _keep(self) -> None:
        if self._at > self._kept:
            try:
                os.fsync(self._stream.fileno())
            except OSError as error:
                raise unwritable(self._file.path.name, error) from error
            self._file.keep(Span(self._kept, self._at), lent=self._lent, beginning=self._beginning)
            self._kept, self._kept_at = self._at, time.monotonic()

    def close(self) -> None:
        """Notes what came; nothing is taken after it."""
        with self._lock, self._stream:
            self._keep()


def read_range(path: Path, span: Span) -> bytes:
    """Exactly these bytes of a file; FileError when they are not there."""
    try:
        with path.open("rb", buffering=0) as stream:
            stream.seek(span.lo)
            data = stream.read(span.size)
    except OSError as error:
        raise FileError(f"{path.name} cannot be read: {error.strerror}.", "Start the model again.") from error
    if data is None or len(data) != span.size:
        raise FileError(f"{path.name} ended while it was read.", "Start the model again.")
    return data
