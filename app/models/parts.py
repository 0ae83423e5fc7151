"""The files of a model as far as a part needs them: headers first, then what these say the part reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from app.core.errors import FileError
from app.engine.arch import read_config
from app.engine.gguf import GgufFile
from app.engine.model.extents import part_extents, tensor_extents
from app.engine.types import Part
from app.models.client import Token, no_token, open_client
from app.models.disk import check_space
from app.models.finish import check_gathered, name_gathered
from app.models.gather import Gathering, Lenders, RangeSource
from app.models.http_ranges import HttpRanges
from app.models.locks import alone_in
from app.models.own_file import OwnFile
from app.models.partial import PartialFile
from app.models.ranges import RangeSet, Span
from app.models.store import begun_downloads, folder_of, partial_of, path_of
from app.models.table import ModelFile, ModelRecord
from app.models.tally import Tally
from app.models.transfer import Tell

HEADER_FIRST = 12 << 20
HEADER_MOST = 256 << 20

Units = Mapping[Path, Sequence[Span]]


class Parts:
    """A model's partial files, for as long as nobody else writes them. Make one with ``parts_of``."""

    def __init__(self, record: ModelRecord, gatherings: Sequence[Gathering]) -> None:
        self._record = record
        self._gatherings = gatherings

    @property
    def first(self) -> Path:
        return self._gatherings[0].partial.path

    async def headers(self) -> Path:
        """As much as says what is in the files; the first file, of which nothing else may be read."""
        for gathering in self._gatherings:
            await asyncio.to_thread(gathering.partial.create)
            await self._header(gathering)
        return self.first

    async def _header(self, gathering: Gathering) -> None:
        """The first 12 MiB, doubled while they are not all of it (spec: rooms §13.3)."""
        size, reach = gathering.partial.size, HEADER_FIRST
        while True:
            await gathering.fill([Span(0, min(reach, size))], lambda _count: None)
            fault = await asyncio.to_thread(_header_fault, gathering.partial)
            if fault is None:
                return
            if reach >= min(size, HEADER_MOST):
                raise fault
            reach *= 2

    async def part(self, part: Part, tell: Tell) -> Path:
        """All that the part reads. The path of the first file, which has its name once everything is there."""
        await self.headers()
        return await self._fill(await asyncio.to_thread(_units, self.first, part), tell)

    async def everything(self, tell: Tell) -> Path:
        """The whole files, by the ranges of their tensors."""
        await self.headers()
        return await self._fill(await asyncio.to_thread(_all_units, self.first), tell)

    async def _fill(self, units: Units, tell: Tell) -> Path:
        missing = sum(gathering.gaps(units[gathering.partial.path]).total for gathering in self._gatherings)
        tally = Tally(sum(RangeSet.of(spans).total for spans in units.values()), missing, tell)
        check_space(self.first.parent, missing)
        for gathering in self._gatherings:
            await gathering.fill(units[gathering.partial.path], tally.came)
        if all(gathering.partial.whole for gathering in self._gatherings):
            return await self._finish(tally, tell)
        return self.first

    async def _finish(self, tally: Tally, tell: Tell) -> Path:
        """Every hash is checked before any file gets its name."""
        for gathering in self._gatherings:
            await check_gathered(gathering, tally.came, tell)
        named = [await asyncio.to_thread(name_gathered, self._record, gathering) for gathering in self._gatherings]
        return named[0]


@asynccontextmanager
async def parts_of(record: ModelRecord, lenders: Lenders | None, token: Token = no_token) -> AsyncGenerator[Parts]:
    """A file's sources are this computer, ``lenders`` in their order, and the table's sources last."""
    async with alone_in(folder_of(record)), open_client(token) as client:
        gatherings: list[Gathering] = []
        for file in record.files:
            partial = PartialFile(partial_of(record, file), file.bytes, file.sha256)
            begun = [OwnFile(path, begun=True) for path in begun_downloads(record, file)]
            sources: list[RangeSource] = [OwnFile(path_of(record, file)), *begun]
            sources += await lenders.sources(file) if lenders is not None else ()
            sources += [
                HttpRanges(client, source, partial) for source in file.sources if has_ranges(file) and source.hub
            ]
            gatherings.append(Gathering(file, partial, sources))
        try:
            yield Parts(record, gatherings)
        finally:
            if lenders is not None:
                lenders.close()


def _units(first: Path, part: Part) -> Units:
    file = GgufFile.open(first)
    extents = part_extents(file, replace(part, draft=part.draft and read_config(file).drafts))
    return {path: [Span(lo, hi) for lo, hi in found] for path, found in extents.items()}


def _all_units(first: Path) -> Units:
    """The tensors, because that is how other devices know ranges, and all between them."""
    found: dict[Path, Sequence[Span]] = {}
    for path, extents in tensor_extents(GgufFile.open(first)).items():
        tensors = [Span(lo, hi) for lo, hi in extents]
        found[path] = sorted([*tensors, *RangeSet.of(tensors).gaps(Span(0, path.stat().st_size))])
    return found


def _header_fault(partial: PartialFile) -> FileError | None:
    """Why what is there is not the whole header, if it is not: zeros that follow may read like a header."""
    try:
        end = GgufFile.header_bytes(partial.path)
    except FileError as error:
        return error
    if partial.good.covers(Span(0, end)):
        return None
    return FileError(f"{partial.path.name} has a header without an end.", "Download the file again.")


def has_ranges(file: ModelFile) -> bool:
    """Whether the file's first source gives ranges; one inside an archive has none."""
    return bool(file.sources) and not file.sources[0].pip
