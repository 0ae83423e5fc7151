"""What this computer can give others of a model's files, whole or in part. All calls read the disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.core.errors import FileError, PooledError
from app.engine.gguf import GgufFile
from app.engine.model.extents import tensor_extents
from app.models.partial import good_ranges, read_range
from app.models.ranges import RangeSet, Span
from app.models.store import is_file_whole, partial_of, path_of
from app.models.table import ModelFile, ModelRecord


def held(record: ModelRecord, file: ModelFile) -> RangeSet:
    """The bytes that are there and flushed."""
    if is_file_whole(record, file):
        return RangeSet.of([Span(0, file.bytes)])
    return good_ranges(partial_of(record, file), file.bytes, file.sha256)


def held_tensors(record: ModelRecord, file: ModelFile) -> Sequence[Span]:
    """The tensors that are there in full, in file order; none while the header is missing."""
    ranges, path = held(record, file), _path(record, file)
    if not ranges.spans:
        return []
    try:
        found = tensor_extents(GgufFile.open(path)).get(path, [])
    except PooledError:
        return []
    return [span for span in (Span(lo, hi) for lo, hi in found) if ranges.covers(span)]


def read(record: ModelRecord, file: ModelFile, span: Span) -> bytes:
    """Raises FileError when not all of it is there."""
    if not held(record, file).covers(span):
        raise FileError(f"These bytes of {file.name} are not on this computer.")
    return read_range(_path(record, file), span)


def _path(record: ModelRecord, file: ModelFile) -> Path:
    return path_of(record, file) if is_file_whole(record, file) else partial_of(record, file)
