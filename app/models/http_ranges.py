"""Ranges of a model file over HTTP."""

from __future__ import annotations

import asyncio
import re

import aiohttp

from app.core.errors import LinkError
from app.models.client import Client
from app.models.gather import Put
from app.models.partial import PartialFile
from app.models.ranges import RangeSet, Span
from app.models.refusals import refusal
from app.models.sources import Location, locate
from app.models.table import ModelFile, Source
from app.models.versions import linked_sha256, version_of

_CHUNK = 1 << 18
_FIRST_BYTE = Span(0, 1)


class NoRanges(LinkError):
    """The server has the file, but gives it only from its beginning to its end."""


class HttpRanges:
    """``gather.RangeSource``: one source of a file, asked for exact ranges (RFC 9110 §14; spec: rooms §13.3).

    ``partial`` remembers which version of the file its ranges are of, and forgets them when the source has another.
    """

    lent = False
    merges = True

    def __init__(self, client: Client, source: Source, partial: PartialFile) -> None:
        self._client = client
        self._source = source
        self._partial = partial
        self._location: Location | None = None

    async def held(self, file: ModelFile) -> RangeSet:
        """All of it, once the server has shown that it has this file.

        Raises NoRanges where the server knows none and for a file inside an archive, LinkError where it does not
        answer or has another file.
        """
        if self._location is None:
            location = await locate(self._source)
            if location.member:
                raise NoRanges(f"{file.name} comes in an archive.", "Start the whole model here once.")
            await self._look(location, file)
            self._location = location
        return RangeSet.of([Span(0, file.bytes)])

    async def _look(self, location: Location, file: ModelFile) -> None:
        """Asks for one byte, which tells the file's size, its version and whether there are ranges."""
        async with self._client.get(location, file.name, {"Range": f"bytes={_FIRST_BYTE.text}"}) as answer:
            if answer.status == 416:
                raise refusal(answer.status, answer.headers)
            size, sha256 = _total_of(answer), linked_sha256(answer)
            if size not in (None, file.bytes) or (file.sha256 and sha256 and sha256 != file.sha256):
                raise LinkError(f"The server has another version of {file.name}.", "Update Pooled, or try again later.")
            if answer.status == 200:
                raise NoRanges("The server gave the whole file instead of a part of it.", "Try again later.")
            await asyncio.to_thread(self._partial.is_of, self._name, version_of(answer))

    @property
    def _name(self) -> str:
        return f"{self._source.hub}/{self._source.file}"

    async def fetch(self, file: ModelFile, span: Span, put: Put) -> None:
        """Raises LinkError for a server that refuses, breaks off, or gives other bytes than these."""
        location = self._location or await locate(self._source)
        async with self._client.get(location, file.name, {"Range": f"bytes={span.text}"}) as answer:
            _check(answer, file, span)
            if not await asyncio.to_thread(self._partial.is_of, self._name, version_of(answer)):
                raise LinkError(f"{file.name} was changed at its source while it was fetched.", "Start again.")
            left = span.size
            async for chunk in answer.content.iter_chunked(_CHUNK):
                left -= len(chunk)
                await asyncio.to_thread(put, chunk)
            if left:
                raise LinkError(f"A part of {file.name} came {left} bytes short.", "Try again.")


def _check(answer: aiohttp.ClientResponse, file: ModelFile, span: Span) -> None:
    if answer.status == 200:
        raise NoRanges("The server gave the whole file instead of a part of it.", "Try again later.")
    if answer.status != 206:
        raise refusal(answer.status, answer.headers)
    extent = answer.headers.get("Content-Range", "")
    if extent != f"bytes {span.text}/{file.bytes}" or answer.content_length not in (None, span.size):
        raise LinkError("The server sent another part of the file than was asked for.", "Try again.")


def _total_of(answer: aiohttp.ClientResponse) -> int | None:
    """The size of the whole file, where the answer says it."""
    if answer.status == 200:
        return answer.content_length
    match = re.fullmatch(r"bytes \d+-\d+/(\d{1,18})", answer.headers.get("Content-Range", ""))
    return int(match[1]) if match else None
