"""Sources in order, hashes, archives, and two who want the same model."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from app.core.errors import FileError, LinkError, ModelError
from app.models import client as client_module
from app.models import fetch, http_ranges
from app.models.shelf import Shelf
from app.models.sources import Location
from app.models.store import first_file, is_whole
from app.models.table import ModelFile, ModelRecord, ModelTable, Source, builtin_table
from app.models.transfer import Transfer
from tests.models.misbehaving import FileServer, failing, file_server, silent, whole

CONTENT = b"weights " * 5000
WRONG = b"WEIGHTS " * 5000
MEMBER = "package/model.gguf"


def record_of(sources: int, content: bytes = CONTENT) -> ModelRecord:
    """A model of one file with so many sources; the source's file name says which server answers."""
    places = tuple(Source(hub="some/where", file=f"source-{i}.gguf") for i in range(sources))
    file = ModelFile("model.gguf", len(content), hashlib.sha256(content).hexdigest(), places)
    return msgspec.structs.replace(builtin_table().models[0], key="test-model", files=(file,))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))


def lead_to(monkeypatch: pytest.MonkeyPatch, *servers: FileServer, member: str = "") -> None:
    """Source number i is server number i."""

    async def locate(source: Source) -> Location:
        number = int(source.file.removeprefix("source-").removesuffix(".gguf"))
        return Location(servers[number].url(source.file), member)

    for module in (fetch, http_ranges):
        monkeypatch.setattr(module, "locate", locate)


def archive(content: bytes = CONTENT, name: str = MEMBER) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, content)
    return out.getvalue()


async def fetched(record: ModelRecord) -> bytes:
    return (await fetch.fetch_model(record, lambda _transfer: None)).read_bytes()


async def test_a_wrong_hash_leads_to_the_next_source(monkeypatch: pytest.MonkeyPatch) -> None:
    async with file_server(whole(WRONG)) as bad, file_server(whole(CONTENT)) as good:
        lead_to(monkeypatch, bad, good)
        assert await fetched(record_of(2)) == CONTENT
    assert is_whole(record_of(2))


async def test_a_failing_then_a_silent_source_lead_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "ANSWER_WITHIN", 0.2)
    async with file_server(failing(500)) as bad, file_server(silent()) as mute, file_server(whole(CONTENT)) as good:
        lead_to(monkeypatch, bad, mute, good)
        assert await fetched(record_of(3)) == CONTENT


async def test_without_a_good_source_the_last_fault_is_told_and_no_file_has_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with file_server(failing(503)) as one, file_server(whole(WRONG)) as other:
        lead_to(monkeypatch, one, other)
        with pytest.raises(LinkError, match="wrong content"):
            await fetched(record_of(2))
    with pytest.raises(FileError, match="not on this computer"):
        first_file(record_of(2))


async def test_a_member_of_an_archive_is_taken_out_and_the_archive_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with file_server(whole(archive())) as server:
        lead_to(monkeypatch, server, member=MEMBER)
        assert await fetched(record_of(1)) == CONTENT
    left = {path.name for path in (tmp_path / "models" / "test-model").iterdir()}
    assert left - {".lock"} == {"model.gguf"}


def damaged() -> bytes:
    """The directory is whole, the packed bytes are not."""
    packed = bytearray(archive())
    packed[60:70] = bytes(10)
    return bytes(packed)


@pytest.mark.parametrize(
    "content",
    [b"no archive at all", archive(name="other/file"), archive(CONTENT * 50), damaged()],
    ids=["no archive", "member missing", "larger than told", "damaged"],
)
async def test_an_archive_that_is_not_what_was_meant_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    async with file_server(whole(content)) as server:
        lead_to(monkeypatch, server, member=MEMBER)
        with pytest.raises(LinkError):
            await fetched(record_of(1))
    assert {path.name for path in (tmp_path / "models" / "test-model").iterdir()} <= {".lock"}


async def test_two_who_want_the_same_model_cause_one_download(monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(1)
    async with file_server(whole(CONTENT)) as server:
        lead_to(monkeypatch, server)
        # Two shelves: as two programs on one computer would have.
        shelves = [Shelf(ModelTable((record,))) for _ in range(2)]
        tells: list[Transfer] = []
        paths = await asyncio.gather(*(shelf.provide(record.key, tells.append) for shelf in shelves))
        assert server.ranges.count("") == 1
    assert {path.read_bytes() for path in paths} == {CONTENT}


async def test_looking_for_models_makes_no_folders(tmp_path: Path) -> None:
    assert Shelf(builtin_table()).on_disk() == ()
    assert list((tmp_path / "models").iterdir()) == []


async def test_a_model_this_version_cannot_run_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    record = msgspec.structs.replace(record_of(1), family="qwen4exp")
    async with file_server(whole(CONTENT)) as server:
        lead_to(monkeypatch, server)
        with pytest.raises(ModelError, match="cannot run"):
            await Shelf(ModelTable((record,))).provide(record.key, lambda _transfer: None)
        assert server.ranges == []
