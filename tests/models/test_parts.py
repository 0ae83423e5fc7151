"""Parts of a model file: the bytes a part reads, and no others, from sources that misbehave."""

from __future__ import annotations

import errno
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from app.core.errors import FileError, LinkError
from app.engine.gguf import GgufFile
from app.engine.model import part_extents
from app.engine.types import Part
from app.models import client as client_module
from app.models import disk, gather, http_ranges, parts, stock
from app.models.gather import Put, RangeSource
from app.models.partial import PartialFile, note_of
from app.models.ranges import RangeSet, Span
from app.models.shelf import Shelf
from app.models.sources import Location
from app.models.store import begun_downloads, is_whole, partial_of, path_of
from app.models.table import ModelFile, ModelRecord, ModelTable, Source, builtin_table
from tests.engine.models import Shape, write_model
from tests.models.misbehaving import FileServer, Handler, failing, file_server, ranged, stalling

MIDDLE = Part(1, 3)
WHOLE = Part(0, 4, embed=True, head=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four layers; an embedding of its own so that most of the file is not in the middle ones."""
    return write_model(tmp_path_factory.mktemp("parts") / "m.gguf", Shape(vocab=4096, tied=False))


@pytest.fixture(scope="module")
def content(model: Path) -> bytes:
    return model.read_bytes()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))
    # Small enough that this small file takes several of each.
    monkeypatch.setattr(parts, "HEADER_FIRST", 1 << 14)
    monkeypatch.setattr(gather, "LARGEST_PIECE", 1 << 19)


def record_of(content: bytes, sources: int = 1) -> ModelRecord:
    places = tuple(Source(hub="some/where", file=f"source-{i}.gguf") for i in range(sources))
    file = ModelFile("m.gguf", len(content), hashlib.sha256(content).hexdigest(), places)
    return msgspec.structs.replace(builtin_table().models[0], key="test-model", files=(file,))


def lead_to(monkeypatch: pytest.MonkeyPatch, *servers: FileServer) -> None:
    async def locate(source: Source) -> Location:
        return Location(servers[int(source.file[7])].url(source.file))

    monkeypatch.setattr(http_ranges, "locate", locate)


async def provided(record: ModelRecord, part: Part = MIDDLE, lenders: Any = None) -> Path:
    return await Shelf(ModelTable((record,))).provide_part(record.key, part, lambda _transfer: None, lenders)


def needed(path: Path, part: Part) -> RangeSet:
    ((_, extents),) = part_extents(GgufFile.open(path), part).items()
    return RangeSet.of(Span(lo, hi) for lo, hi in extents)


def good(record: ModelRecord) -> RangeSet:
    (file,) = record.files
    return stock.held(record, file)


class Device:
    """A lender that has some ranges, and gives them as ``give`` says."""

    merges = lent = True

    def __init__(self, content: bytes, held: RangeSet | None = None, give: Callable[[bytes], bytes] = bytes) -> None:
        self._content, self._give = content, give
        self._held = RangeSet.of([Span(0, len(content))]) if held is None else held
        self.asked: list[Span] = []

    async def sources(self, _file: ModelFile) -> Sequence[RangeSource]:
        return [self]

    def close(self) -> None: ...

    async def held(self, _file: ModelFile) -> RangeSet:
        return self._held

    async def fetch(self, _file: ModelFile, span: Span, put: Put) -> None:
        self.asked.append(span)
        put(self._give(self._content[span.lo : span.hi]))


async def test_a_part_takes_its_own_bytes_and_no_others(
    monkeypatch: pytest.MonkeyPatch, model: Path, content: bytes
) -> None:
    record = record_of(content)
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        path = await provided(record)
        wanted = needed(model, MIDDLE)
        assert (good(record) - wanted).total < 1 << 14, "nothing but the rest of the header's first reach"
        assert not (wanted - good(record)).spans
        assert good(record).total < len(content) * 0.65
        asked = len(server.ranges)
        assert await provided(record) == path
        assert len(server.ranges) == asked, "what is there is not fetched again"
    data = path.read_bytes()
    assert len(data) == len(content)
    assert all(data[s.lo : s.hi] == content[s.lo : s.hi] for s in wanted.spans)
    assert GgufFile.open(path).identity() == GgufFile.open(model).identity()
    assert not is_whole(record)


async def test_what_is_there_of_a_part_is_not_fetched_again_for_the_whole(
    monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    record = record_of(content)
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        await provided(record)
        before = good(record)
        server.ranges.clear()
        path = await Shelf(ModelTable((record,))).provide(record.key, lambda _transfer: None)
        assert sum(span.size for span in server.spans) == len(content) - before.total
    assert path.read_bytes() == content
    assert not partial_of(record, record.files[0]).exists()
    assert not note_of(partial_of(record, record.files[0])).exists()


async def test_a_header_alone_is_enough_to_read_the_description(
    monkeypatch: pytest.MonkeyPatch, content: bytes, model: Path
) -> None:
    record = record_of(content)
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        path = await Shelf(ModelTable((record,))).provide_header(record.key)
        assert len(server.ranges) > 1, "the first reach did not hold it all"
    assert GgufFile.open(path).metadata == GgufFile.open(model).metadata
    assert good(record).total < len(content) / 4


async def test_a_header_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    nonsense = b"GGUF" + (3).to_bytes(4, "little") + bytes(200_000)
    record = record_of(nonsense[:8] + (5).to_bytes(8, "little") + nonsense[16:])
    async with file_server(ranged(nonsense[:8] + (5).to_bytes(8, "little") + nonsense[16:])) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(FileError, match="GGUF"):
            await provided(record)


def once(bad: Handler, good: Handler, when: int = 3) -> Handler:
    """``bad`` for one question, the ``when``-th."""
    count = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        return await (bad if count == when else good)(request)

    return answer


def short(content: bytes) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        first, last = (int(n) for n in request.headers["Range"].removeprefix("bytes=").split("-"))
        extent = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
        return web.Response(status=206, body=content[first:last], headers=extent)

    return answer


def other(content: bytes, total: int = 0, shift: int = 0) -> Handler:
    """Another range, or of another file, than was asked for."""

    async def answer(request: web.Request) -> web.Response:
        first, last = (int(n) + shift for n in request.headers["Range"].removeprefix("bytes=").split("-"))
        extent = {"Content-Range": f"bytes {first}-{last}/{total or len(content)}"}
        return web.Response(status=206, body=content[first : last + 1], headers=extent)

    return answer


BAD: dict[str, Callable[[bytes], Handler]] = {
    "short": short,
    "shifted": lambda content: other(content, shift=-1),
    "of another file": lambda content: other(content, total=len(content) + 1),
    "busy": lambda _content: failing(429),
    "broken": lambda _content: failing(500),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_range_is_fetched_once_more(monkeypatch: pytest.MonkeyPatch, content: bytes, kind: str) -> None:
    record = record_of(content)
    async with file_server(once(BAD[kind](content), ranged(content))) as server:
        lead_to(monkeypatch, server)
        path = await provided(record)
    wanted = needed(path, MIDDLE)
    assert all(path.read_bytes()[s.lo : s.hi] == content[s.lo : s.hi] for s in wanted.spans)


@pytest.mark.parametrize("kind", [*BAD, "no ranges"])
async def test_a_source_that_stays_bad_leads_to_the_next(
    monkeypatch: pytest.MonkeyPatch, content: bytes, kind: str
) -> None:
    async def all_of_it(_request: web.Request) -> web.Response:
        return web.Response(body=content)

    bad = all_of_it if kind == "no ranges" else BAD[kind](content)
    record = record_of(content, sources=2)
    async with file_server(bad) as one, file_server(ranged(content)) as two:
        lead_to(monkeypatch, one, two)
        await provided(record)
        assert len(one.ranges) <= 2 * gather.AT_ONCE + gather.MOST_FAULTS
    assert not good(record).gaps(needed(partial_of(record, record.files[0]), MIDDLE).spans[0])


@pytest.mark.parametrize("status", [401, 404, 429, 503])
async def test_a_refusal_is_worded_as_for_whole_files(
    monkeypatch: pytest.MonkeyPatch, content: bytes, status: int
) -> None:
    async with file_server(failing(status)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(LinkError, match=f"The server answered {status}"):
            await provided(record_of(content))


async def test_what_came_before_a_break_stays(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(client_module, "STALLED", 0.3)
    record = record_of(content)
    async with file_server(once(stalling(content, 500), ranged(content), when=6), ranged(content)) as server:
        lead_to(monkeypatch, server)
        server.answers[:] = [ranged(content)] * 5 + [failing(500)]
        with pytest.raises(LinkError):
            await provided(record)
        before = good(record)
        assert before.total > 1 << 14
        server.answers[:] = [ranged(content)]
        server.ranges.clear()
        await provided(record)
    assert not any((RangeSet((span,)) - before).total < span.size for span in server.spans), "no byte twice"


async def test_a_full_disk_says_so_and_loses_nothing(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    record, written = record_of(content), 0

    class Filling(FileIO):
        def write(self, data: Any) -> int:
            nonlocal written
            if written > 600_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            written += super().write(data) or 0
            return len(data)

    opened = Path.open

    def fills(self: Path, mode: str = "r", **options: Any) -> Any:
        return Filling(self, "r+") if mode == "r+b" else opened(self, mode, **options)

    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        with monkeypatch.context() as full:
            full.setattr(Path, "open", fills)
            with pytest.raises(FileError, match="No space left"):
                await provided(record)
        assert good(record).total > 500_000
        path = await provided(record)
    assert all(path.read_bytes()[s.lo : s.hi] == content[s.lo : s.hi] for s in needed(path, MIDDLE).spans)


async def test_too_little_room_is_said_before_it_is_fetched(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    usage = disk.shutil.disk_usage("/")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _path: usage._replace(free=100_000))
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(FileError, match="disk has"):
            await provided(record_of(content))


async def test_devices_come_before_the_source(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    device, record = Device(content), record_of(content)
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        path = await provided(record, lenders=device)
        assert server.ranges == []
    assert all(path.read_bytes()[s.lo : s.hi] == content[s.lo : s.hi] for s in needed(path, MIDDLE).spans)


@pytest.mark.parametrize("give", [lambda b: b[:-1], lambda b: b + b"x", lambda _b: b""], ids=["short", "long", "empty"])
async def test_a_device_that_gives_another_length_is_left(
    monkeypatch: pytest.MonkeyPatch, content: bytes, give: Callable[[bytes], bytes]
) -> None:
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        record = record_of(content)
        path = await provided(record, lenders=Device(content, give=give))
        assert server.ranges
    assert all(path.read_bytes()[s.lo : s.hi] == content[s.lo : s.hi] for s in needed(path, MIDDLE).spans)


async def test_a_device_that_lies_is_found_out_when_the_file_is_whole(
    monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    liar = Device(content, RangeSet.of([Span(300_000, 900_000)]), lambda data: bytes(len(data)))
    record = record_of(content)
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        shelf = Shelf(ModelTable((record,)))
        for part in (WHOLE, MIDDLE):
            await shelf.provide_part(record.key, part, lambda _transfer: None, liar)
        assert liar.asked
        path = await shelf.provide(record.key, lambda _transfer: None)
    assert path.read_bytes() == content
    assert is_whole(record)


async def test_a_whole_file_is_preferred_and_nothing_is_asked(content: bytes) -> None:
    record, device = record_of(content, sources=0), Device(content)
    path = path_of(record, record.files[0])
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert await provided(record, lenders=device) == path
    assert device.asked == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: note_of(path).write_bytes(b"{"),
        lambda path: note_of(path).write_bytes(b'{"bytes":1,"sha256":"","good":[[0,1]]}'),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"cut"),
        lambda path: note_of(path).unlink(),
    ],
    ids=["damaged note", "of another file", "file gone", "file cut", "note gone"],
)
async def test_a_note_that_does_not_fit_its_file_counts_for_nothing(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    partial = PartialFile(tmp_path / "p", 1000, "ab")
    partial.create()
    partial.keep(Span(0, 1000), lent=False)
    assert PartialFile(tmp_path / "p", 1000, "ab").whole
    damage(tmp_path / "p")
    assert not PartialFile(tmp_path / "p", 1000, "ab").good.spans


FILL_FOREVER = """
import itertools, sys
from pathlib import Path
from app.models import partial
from app.models.ranges import Span
partial.KEEP_EVERY = 1 << 16
content = Path(sys.argv[1]).read_bytes()
file = partial.PartialFile(Path(sys.argv[2]), len(content), "")
file.create()
for start in itertools.count(0, 1 << 18):
    lo = start % len(content)
    filling = partial.Filling(file, Span(lo, len(content)), lent=False)
    for at in range(lo, len(content), 10_000):
        filling.put(content[at : at + 10_000])
"""


@pytest.mark.parametrize("notes", [1, 3, 9])
def test_what_was_noted_is_there_after_the_process_was_killed(tmp_path: Path, model: Path, notes: int) -> None:
    content, path = model.read_bytes(), tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", FILL_FOREVER, str(model), str(path)], cwd=Path(__file__).parents[2]
    )
    seen: set[bytes] = set()
    until = time.monotonic() + 60
    while len(seen) < notes and time.monotonic() < until:
        seen |= {note_of(path).read_bytes()} if note_of(path).exists() else set()
        time.sleep(0.001)
    process.kill()
    process.wait()
    good = PartialFile(path, len(content), "").good
    assert good.total >= notes << 16
    data = path.read_bytes()
    assert all(data[span.lo : span.hi] == content[span.lo : span.hi] for span in good.spans)


async def test_a_download_that_was_begun_is_used(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    record = record_of(content)
    (begun,) = begun_downloads(record, record.files[0])
    begun.parent.mkdir(parents=True)
    begun.write_bytes(content[:3_000_000])
    async with file_server(ranged(content)) as server:
        lead_to(monkeypatch, server)
        await provided(record)
        assert min(span.lo for span in server.spans) == 3_000_000
        assert (await Shelf(ModelTable((record,))).provide(record.key, lambda _t: None)).read_bytes() == content
    assert not begun.exists()


async def test_a_packed_model_comes_whole_from_a_device(content: bytes) -> None:
    record = record_of(content)
    packed = msgspec.structs.replace(record.files[0], sources=(Source(pip="some-package", version="1", member="m"),))
    record = msgspec.structs.replace(record, files=(packed,))
    path = await provided(record, lenders=Device(content))
    assert path == path_of(record, packed)
    assert path.read_bytes() == content
