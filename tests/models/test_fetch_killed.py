"""A program that is killed while it fetches: what it noted is there, and the next one goes on from that."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from app.models import http_ranges
from app.models.fetch import fetch_model
from app.models.partial import PartialFile
from app.models.sources import Location
from app.models.store import home_of, partial_of
from app.models.table import ModelFile, ModelRecord, Source, builtin_table
from tests.models.misbehaving import FileServer, Handler, file_server, ranged

CONTENT = random.Random(3).randbytes(5_000_000)
KILLS = 3

FETCH = """
import asyncio, sys
import msgspec
from app.models import fetch, gather, http_ranges, partial
from app.models.sources import Location
from app.models.table import ModelRecord
partial.KEEP_EVERY = 1 << 16
gather.SMALLEST_PIECE = gather.LARGEST_PIECE = 1 << 18
async def locate(source):
    return Location(sys.argv[2])
http_ranges.locate = locate
record = msgspec.json.decode(sys.argv[1], type=ModelRecord)
asyncio.run(fetch.fetch_model(record, lambda transfer: None))
"""


def record_of(content: bytes) -> ModelRecord:
    file = ModelFile("m.gguf", len(content), hashlib.sha256(content).hexdigest(), (Source(hub="a/b", file="m.gguf"),))
    return msgspec.structs.replace(builtin_table().models[0], key="test-model", files=(file,))


RECORD = record_of(CONTENT)
(FILE,) = RECORD.files


def partial() -> PartialFile:
    return PartialFile(partial_of(RECORD, FILE), FILE.bytes, FILE.sha256)


def slow(content: bytes) -> Handler:
    """Ranges in small pieces, so that a kill finds all of them half-way."""
    serve = ranged(content)

    async def answer(request: web.Request) -> web.StreamResponse:
        given = await serve(request)
        assert isinstance(given, web.Response)
        assert isinstance(given.body, bytes)
        response = web.StreamResponse(status=given.status, headers={"Content-Range": given.headers["Content-Range"]})
        response.content_length = len(given.body)
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for at in range(0, len(given.body), 20_000):
                await response.write(given.body[at : at + 20_000])
                await asyncio.sleep(0.005)
        return response

    return answer


async def killed_at(server: FileServer, count: int) -> None:
    """Kills a program as soon as it has noted so many bytes."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", FETCH, msgspec.json.encode(RECORD).decode(), server.url()),
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
    )
    ended = asyncio.ensure_future(process.wait())
    while partial().good.total < count and not ended.done():  # noqa: ASYNC110 - another program sets no event
        await asyncio.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    assert await ended == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
async def test_whatever_byte_it_was_killed_at_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    dice, before = random.Random(), 0
    async with file_server(slow(CONTENT)) as server:
        for _ in range(KILLS):
            await killed_at(server, before + dice.randrange(1, 600_000))
            good, data = partial().good, partial().path.read_bytes()
            assert all(data[span.lo : span.hi] == CONTENT[span.lo : span.hi] for span in good.spans)
            assert good.total > before, "what was noted stays"
            before = good.total
            assert not home_of(RECORD, FILE).exists()
    async with file_server(ranged(CONTENT)) as server:
        await _finish(monkeypatch, server)
        assert sum(span.size for span in server.spans) == len(CONTENT) - before, "no byte twice"


async def _finish(monkeypatch: pytest.MonkeyPatch, server: FileServer) -> None:
    async def locate(_source: Source) -> Location:
        return Location(server.url())

    monkeypatch.setattr(http_ranges, "locate", locate)
    assert (await fetch_model(RECORD, lambda _transfer: None)).read_bytes() == CONTENT
