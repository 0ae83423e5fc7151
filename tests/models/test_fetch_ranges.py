"""Whole files by ranges: several at once, resumed, and against servers whose file is not the one that was meant."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from app.core.errors import FileError, LinkError
from app.models import client as client_module
from app.models import disk, fetch, gather, http_ranges
from app.models.fetch import fetch_model
from app.models.partial import PartialFile, note_of
from app.models.ranges import RangeSet, Span
from app.models.sources import Location
from app.models.store import begun_downloads, home_of, is_whole, partial_of
from app.models.table import ModelFile, ModelRecord, Source, builtin_table
from app.models.transfer import Stage, Transfer
from tests.models.misbehaving import FileServer, Handler, failing, file_server, ranged, stalling, tagged, whole

CONTENT = random.Random(9).randbytes(400_000)
OTHER = random.Random(10).randbytes(len(CONTENT))
PIECE = 1 << 14


def record_of(*contents: bytes, sources: int = 1) -> ModelRecord:
    """One file a content; the file name of a source says which server answers."""
    places = tuple(Source(hub="some/where", file=f"source-{i}.gguf") for i in range(sources))
    files = tuple(
        ModelFile(f"m{i}.gguf", len(content), hashlib.sha256(content).hexdigest(), places)
        for i, content in enumerate(contents)
    )
    return msgspec.structs.replace(builtin_table().models[0], key="test-model", files=files)


RECORD = record_of(CONTENT)
(FILE,) = RECORD.files


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "SMALLEST_PIECE", PIECE)
    monkeypatch.setattr(gather, "LARGEST_PIECE", PIECE)


def lead_to(monkeypatch: pytest.MonkeyPatch, *servers: FileServer) -> None:
    async def locate(source: Source) -> Location:
        return Location(servers[int(source.file[7])].url(source.file))

    for module in (fetch, http_ranges):
        monkeypatch.setattr(module, "locate", locate)


def good() -> RangeSet:
    return PartialFile(partial_of(RECORD, FILE), FILE.bytes, FILE.sha256).good


async def fetched(record: ModelRecord = RECORD, tell: Callable[[Transfer], None] = lambda _t: None) -> bytes:
    return (await fetch_model(record, tell)).read_bytes()


def after(count: int, first: Handler, then: Handler) -> Handler:
    """``first`` for so many questions, ``then`` for the rest."""
    asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return await (first if asked <= count else then)(request)

    return answer


async def test_four_ranges_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    open_now, most, four = 0, 0, asyncio.Event()
    serve = ranged(CONTENT)

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal open_now, most
        if request.headers["Range"] == "bytes=0-0":
            return await serve(request)
        open_now += 1
        most = max(most, open_now)
        if open_now == gather.AT_ONCE:
            four.set()
        await four.wait()
        response = await serve(request)
        open_now -= 1
        return response

    async with file_server(answer) as server:
        lead_to(monkeypatch, server)
        assert await fetched() == CONTENT
        assert sorted(server.spans) == [Span(lo, min(lo + PIECE, len(CONTENT))) for lo in range(0, len(CONTENT), PIECE)]
    assert most == gather.AT_ONCE == 4


def test_a_file_of_64_mb_is_cut_in_four_and_no_range_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    megabyte = 1 << 20
    sizes = {size: gather.pieces_of(RangeSet.of([Span(0, size * megabyte)])) for size in (1, 64, 100, 4000)}
    assert [len(cut) for cut in sizes.values()] == [1, 4, 4, 63]
    assert max(span.size for span in sizes[4000]) == 64 * megabyte


async def test_the_bar_counts_all_files_then_the_check_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    record, told = record_of(CONTENT, CONTENT[::-1], sources=1), list[Transfer]()
    files = {file.name: file for file in record.files}
    parts = tuple(
        msgspec.structs.replace(file, sources=(Source(hub="some/where", file=f"source-{i}.gguf"),))
        for i, file in enumerate(files.values())
    )
    record = msgspec.structs.replace(record, files=parts)
    async with file_server(ranged(CONTENT)) as one, file_server(ranged(CONTENT[::-1])) as two:
        lead_to(monkeypatch, one, two)
        await fetched(record, told.append)
    fetching = [t for t in told if t.stage is Stage.FETCH]
    checks = [t for t in told if t.stage is Stage.CHECK and t.done == t.total]
    assert (fetching[-1].done, fetching[-1].total) == (2 * len(CONTENT), 2 * len(CONTENT))
    assert [t.done for t in fetching] == sorted(t.done for t in fetching)
    assert [t.total for t in checks] == [len(CONTENT)] * 2
    assert is_whole(record)


async def test_a_source_that_breaks_off_leaves_its_ranges_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(CONTENT, sources=2)
    async with file_server(after(10, ranged(CONTENT), failing(500))) as one, file_server(ranged(CONTENT)) as two:
        lead_to(monkeypatch, one, two)
        assert await fetched(record) == CONTENT
        assert 0 < sum(span.size for span in two.spans) <= len(CONTENT) - 5 * PIECE


async def test_a_stopped_fetch_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    held = asyncio.Event()

    async def hold(_request: web.Request) -> web.StreamResponse:
        held.set()
        await asyncio.sleep(30)
        return web.Response()

    async with file_server(after(12, ranged(CONTENT), hold)) as server:
        lead_to(monkeypatch, server)
        task = asyncio.ensure_future(fetched())
        await held.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    before = good()
    assert before.total >= 5 * PIECE
    assert not is_whole(RECORD), "a part is never offered as a model"
    async with file_server(ranged(CONTENT)) as server:
        lead_to(monkeypatch, server)
        assert await fetched() == CONTENT
        assert sum(span.size for span in server.spans) == len(CONTENT) - before.total
    assert not note_of(partial_of(RECORD, FILE)).exists()


async def test_a_file_that_changes_while_it_is_fetched_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    changing = after(8, tagged('"one"', ranged(OTHER)), tagged('"two"', ranged(CONTENT)))
    async with file_server(changing) as server:
        lead_to(monkeypatch, server)
        assert await fetched() == CONTENT


async def test_a_part_of_a_version_that_is_gone_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with file_server(tagged('"one"', after(8, ranged(OTHER), failing(404)))) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(LinkError, match="404"):
            await fetched()
    assert good().spans
    async with file_server(tagged('"two"', ranged(CONTENT))) as server:
        lead_to(monkeypatch, server)
        assert await fetched() == CONTENT


async def test_a_file_that_always_changes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        return await tagged(f'"{count}"', ranged(CONTENT))(request)

    async with file_server(answer) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(LinkError, match="chang"):
            await fetched()


def linked(sha256: str, handler: Handler) -> Handler:
    """A hub that says which content it sends on to."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await handler(request)
        response.headers["X-Linked-Etag"] = f'"{sha256}"'
        return response

    return answer


@pytest.mark.parametrize("other", ["size", "hash"])
async def test_another_file_is_refused_before_it_is_fetched(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    handler = ranged(CONTENT + b"x") if other == "size" else linked("0" * 64, ranged(OTHER))
    async with file_server(handler) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(LinkError, match="another version"):
            await fetched()
        assert server.spans == []


async def test_a_shorter_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with file_server(failing(416)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(LinkError, match="other bytes"):
            await fetched()


async def test_a_server_without_ranges_gives_the_file_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    async with file_server(whole(CONTENT)) as server:
        lead_to(monkeypatch, server)
        assert await fetched() == CONTENT
        assert server.ranges == ["bytes=0-0", ""]
    assert {path.name for path in home_of(RECORD, FILE).parent.iterdir()} <= {".lock", FILE.name}


async def test_what_a_server_without_ranges_gave_is_used_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "STALLED", 0.2)
    async with file_server(whole(CONTENT), stalling(CONTENT, 200_000)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(LinkError):
            await fetched()
    (begun,) = begun_downloads(RECORD, FILE)
    have = begun.stat().st_size
    assert have > 0
    async with file_server(ranged(CONTENT)) as server:
        lead_to(monkeypatch, server)
        assert await fetched() == CONTENT
        assert min(span.lo for span in server.spans) == have
    assert not begun.exists()


async def test_wrong_content_is_deleted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with file_server(ranged(OTHER)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(LinkError, match="wrong content and was deleted"):
            await fetched()
    assert not partial_of(RECORD, FILE).exists()
    assert not is_whole(RECORD)


async def test_too_little_room_is_said_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = disk.shutil.disk_usage("/")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _path: usage._replace(free=len(CONTENT) - 1))
    async with file_server(ranged(CONTENT)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(FileError, match="disk has"):
            await fetched()
        assert server.ranges == []


async def test_what_is_there_needs_no_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    partial = PartialFile(partial_of(RECORD, FILE), FILE.bytes, FILE.sha256)
    partial.create()
    partial.path.write_bytes(CONTENT)
    partial.keep(Span(0, 300_000), lent=False)
    usage = disk.shutil.disk_usage("/")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _path: usage._replace(free=100_000))
    async with file_server(ranged(CONTENT)) as server:
        lead_to(monkeypatch, server)
        assert await fetched() == CONTENT


async def test_a_file_nobody_has_is_a_typed_error() -> None:
    with pytest.raises(LinkError, match="no source"):
        await fetched(record_of(CONTENT, sources=0))


async def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "test-model").write_bytes(b"")
    with pytest.raises(FileError, match="cannot be written"):
        await fetched()


@pytest.mark.parametrize("give", [ranged, whole], ids=["by ranges", "in one piece"])
async def test_a_name_that_cannot_be_given_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, give: Callable[[bytes], Handler]
) -> None:
    """A folder has taken the name."""
    (home_of(RECORD, FILE) / "x").mkdir(parents=True)
    async with file_server(give(CONTENT)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(FileError, match="cannot be written"):
            await fetched()
