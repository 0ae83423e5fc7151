"""What is said to be on this computer, and what is freed when it is removed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from filelock import FileLock

from app.core.errors import FileError
from app.models.disk import taken_bytes
from app.models.finish import name_gathered
from app.models.gather import Gathering
from app.models.inventory import ModelHolding, State, holding_of, inventory, needed_gb, words_of
from app.models.partial import PartialFile
from app.models.places import Origin
from app.models.ranges import Span
from app.models.removal import remove
from app.models.rows import full_table, refresh, take_file
from app.models.store import begun_downloads, folder_of, home_of, is_whole, partial_of
from app.models.table import ModelFile, ModelRecord, ModelTable, Source, builtin_table
from app.models.transfer import Transfer
from tests.engine.models import Shape, write_model
from tests.models.stores import put_hugging_face, put_lm_studio, put_ollama

CONTENT = os.urandom(1 << 20)
FILE = ModelFile("m.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), (Source(hub="a/b", file="m.gguf"),))
RECORD = msgspec.structs.replace(builtin_table().models[0], key="test-model", files=(FILE,))
TABLE = ModelTable((RECORD,))


def quiet(_transfer: Transfer) -> None: ...


def put_whole() -> Path:
    path = home_of(RECORD, FILE)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return path


def put_part(count: int, *, lent: bool = False) -> PartialFile:
    partial = PartialFile(partial_of(RECORD, FILE), FILE.bytes, FILE.sha256)
    partial.create()
    with partial.path.open("r+b") as stream:
        stream.write(CONTENT[:count])
    partial.keep(Span(0, count), lent=lent)
    return partial


def held() -> ModelHolding:
    (holding,) = inventory(TABLE)
    return holding


def test_a_model_that_is_not_here_is_listed_too() -> None:
    holding = held()
    assert (holding.state, holding.here, holding.total) == (State.ABSENT, 0, len(CONTENT))
    assert (holding.origin, holding.path) == (None, None)
    assert (holding.need_gb, holding.licence) == (0.6, "Apache-2.0")
    assert [h.record for h in inventory()] == list(builtin_table().models)


def test_a_fetched_model_is_whole() -> None:
    path = put_whole()
    assert held() == ModelHolding(RECORD, State.WHOLE, len(CONTENT), len(CONTENT), Origin.FETCHED, path, 0.6)


@pytest.mark.parametrize(("lent", "origin"), [(False, Origin.FETCHED), (True, Origin.ROOM)])
def test_a_part_is_partial_until_it_is_whole_and_keeps_where_it_came_from(lent: bool, origin: Origin) -> None:
    partial = put_part(300_000, lent=lent)
    assert (held().state, held().here, held().origin, held().path) == (State.PARTIAL, 300_000, origin, None)
    partial = put_part(len(CONTENT), lent=lent)
    name_gathered(RECORD, Gathering(FILE, partial, ()))
    assert (held().state, held().origin) == (State.WHOLE, origin)


def test_a_begun_download_is_partial() -> None:
    (begun,) = begun_downloads(RECORD, FILE)
    begun.parent.mkdir(parents=True)
    begun.write_bytes(CONTENT[:1000])
    assert (held().state, held().here) == (State.PARTIAL, 1000)


@pytest.mark.parametrize(("put", "origin"), [(put_ollama, Origin.OLLAMA), (put_hugging_face, Origin.HUGGING_FACE)])
def test_a_stored_model_says_whose_it_is(put: Callable[[Path, bytes], Path], origin: Origin) -> None:
    path = put(Path.home(), CONTENT)
    refresh(TABLE)
    assert (held().state, held().origin, held().path) == (State.WHOLE, origin, path)


def test_removing_a_fetched_model_frees_its_bytes() -> None:
    path = put_whole()
    (begun,) = begun_downloads(RECORD, FILE)
    begun.write_bytes(CONTENT[:5000])
    taken = taken_bytes(path) + taken_bytes(begun)
    assert remove(RECORD) == taken >= len(CONTENT)
    assert held().state is State.ABSENT
    assert {left.name for left in folder_of(RECORD).iterdir()} == {".lock"}


def test_a_sparse_part_frees_what_it_really_took() -> None:
    large = msgspec.structs.replace(FILE, bytes=1 << 34)
    record = msgspec.structs.replace(RECORD, files=(large,))
    partial = PartialFile(partial_of(record, large), large.bytes, large.sha256)
    partial.create()
    with partial.path.open("r+b") as stream:
        stream.write(CONTENT)
    partial.keep(Span(0, len(CONTENT)), lent=False)
    assert len(CONTENT) <= remove(record) < 4 * len(CONTENT)
    assert not partial.path.exists()


def test_what_is_being_fetched_is_not_removed() -> None:
    put_whole()
    with FileLock(folder_of(RECORD) / ".lock"), pytest.raises(FileError, match="being fetched"):
        remove(RECORD)
    assert held().state is State.WHOLE


def test_what_is_not_here_cannot_be_removed() -> None:
    with pytest.raises(FileError, match="not on this computer"):
        remove(RECORD)
    assert not folder_of(RECORD).exists()


@pytest.mark.parametrize("put", [put_ollama, put_hugging_face])
def test_the_stores_of_others_are_not_touched(put: Callable[[Path, bytes], Path]) -> None:
    path = put(Path.home(), CONTENT)
    refresh(TABLE)
    with pytest.raises(FileError, match="store of"):
        remove(RECORD)
    assert path.read_bytes() == CONTENT
    put_part(5000)
    assert remove(RECORD) > 0, "the part was Pooled's own"
    assert path.read_bytes() == CONTENT
    assert is_whole(RECORD)


def test_a_store_that_lost_the_model_has_nothing_to_remove() -> None:
    path = put_ollama(Path.home(), CONTENT)
    refresh(TABLE)
    path.unlink()
    with pytest.raises(FileError, match="not on this computer"):
        remove(RECORD)


async def test_an_own_file_leaves_the_list_and_stays(tmp_path: Path) -> None:
    path = write_model(tmp_path / "mine.gguf", Shape(layers=1, vocab=64))
    record = await take_file(path, quiet, TABLE)
    holding = holding_of(record)
    assert (holding.state, holding.origin, holding.path) == (State.WHOLE, Origin.OWN, path)
    assert remove(record) == 0
    assert path.exists()
    assert full_table(TABLE) == TABLE


async def test_the_tables_model_as_an_own_file_stays_too(tmp_path: Path) -> None:
    path = tmp_path / "anything.gguf"
    path.write_bytes(CONTENT)
    assert await take_file(path, quiet, TABLE) == RECORD
    assert held().origin is Origin.OWN
    assert remove(RECORD) == 0
    assert path.read_bytes() == CONTENT
    assert held().state is State.ABSENT


def test_a_link_among_the_files_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(CONTENT)
    folder_of(RECORD).mkdir(parents=True)
    home_of(RECORD, FILE).symlink_to(outside / "precious")
    (folder_of(RECORD) / "partial").symlink_to(outside)
    assert remove(RECORD) < len(CONTENT)
    assert (outside / "precious").read_bytes() == CONTENT


def test_a_file_in_use_that_cannot_be_deleted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    put_whole()

    def busy(_self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", busy)
    with pytest.raises(FileError, match=r"cannot be deleted: Permission denied"):
        remove(RECORD)


def test_the_need_is_the_tables_or_counted() -> None:
    for record in builtin_table().models:
        assert needed_gb(record) == record.shown_gb
    counted: ModelRecord = msgspec.structs.replace(builtin_table().get("qwen3.8-27b"), shown_gb=0.0)
    assert needed_gb(counted) == pytest.approx(18.4, abs=1.0)


def test_words_of_a_file_without_any_are_empty(tmp_path: Path) -> None:
    words = words_of(write_model(tmp_path / "m.gguf", Shape(layers=1, vocab=64)))
    assert (words.licence, words.template) == ("", "")
    path = put_lm_studio(Path.home(), b"no model")
    with pytest.raises(FileError):
        words_of(path)
