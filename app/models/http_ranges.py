"""Ranges of a model file over HTTP."""

from __future__ import annotations

import asyncio

import aiohttp

from app.core.errors import LinkError
from app.models.download import refusal
from app.models.gather import Put
from app.models.ranges import RangeSet, Span
from app.models.sources import ANSWER_WITHIN, locate
from app.models.table import ModelFile, Source

STALLED = 15.0
_CHUNK = 1 << 18


def session() -> aiohttp.ClientSession:
    """Gives up a server that does not connect within 5 s, or sends nothing for 15."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_WITHIN, sock_read=STALLED)
    return aiohttp.ClientSession(trust_env=True, timeout=timeout)


class HttpRanges:
    """``gather.RangeSource``: one source of a file, asked for exact ranges (RFC 9110 §14; spec: rooms §13.3)."""

    lent = False
    merges = True

    def __init__(self, client: aiohttp.ClientSession, source: Source) -> None:
        self._client = client
        self._source = source
        self._url = ""

    async def held(self, file: ModelFile) -> RangeSet:
        """A file inside an archive has no ranges."""
        location = await locate(self._source)
        self._url = location.url
        return RangeSet() if location.member else RangeSet.of([Span(0, file.bytes)])

    async def fetch(self, file: ModelFile, span: Span, put: Put) -> None:
        """Raises LinkError for a server that refuses, breaks off, or gives other bytes than these."""
        try:
            await self._fetch(file, span, put)
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or "no answer"
            raise LinkError(f"The download of {file.name} broke off: {why}.", "Try again.") from error

    async def _fetch(self, file: ModelFile, span: Span, put: Put) -> None:
        # Compressed on the way, a file's bytes could not be counted.
        headers = {"Accept-Encoding": "identity", "Range": f"bytes={span.text}"}
        async with await asyncio.wait_for(self._client.get(self._url, headers=headers), ANSWER_WITHIN) as answer:
            _check(answer, file, span)
            left = span.size
            async for chunk in answer.content.iter_chunked(_CHUNK):
                left -= len(chunk)
                await asyncio.to_thread(put, chunk)
            if left:
                raise LinkError(f"A part of {file.name} came {left} bytes short.", "Try again.")


def _check(answer: aiohttp.ClientResponse, file: ModelFile, span: Span) -> None:
    if answer.status != 206:
        raise refusal(answer)
    extent = answer.headers.get("Content-Range", "")
    if extent != f"bytes {span.text}/{file.bytes}" or answer.content_length not in (None, span.size):
        raise LinkError("The server sent another part of the file than was asked for.", "Try again.")
