"""Ranges from a file that is already on this computer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.core.errors import FileError, LinkError
from app.models.gather import Put
from app.models.partial import read_range
from app.models.ranges import RangeSet, Span, pieces
from app.models.table import ModelFile

_CHUNK = 4 << 20


class OwnFile:
    """``gather.RangeSource``: of a model in several files, some may be whole; a ``begun`` download has a first part."""

    lent = False
    merges = True

    def __init__(self, path: Path, *, begun: bool = False) -> None:
        self._path = path
        self._begun = begun

    async def held(self, file: ModelFile) -> RangeSet:
        size = await asyncio.to_thread(_size, self._path)
        return RangeSet.of([Span(0, size)] if size == file.bytes or (self._begun and size < file.bytes) else [])

    async def fetch(self, file: ModelFile, span: Span, put: Put) -> None:
        await asyncio.to_thread(self._copy, span, put)

    def _copy(self, span: Span, put: Put) -> None:
        for piece in pieces([span], _CHUNK):
            try:
                data = read_range(self._path, piece)
            except FileError as error:
                raise LinkError(error.what, error.remedy) from error
            put(data)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
