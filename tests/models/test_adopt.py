"""A model of the table that another program has: used where it is, and only if it is that very file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.core.errors import LinkError
from app.models import hashing
from app.models.adopt import adopt, adopt_known
from app.models.places import Origin, origin_of
from app.models.shelf import Shelf
from app.models.store import first_file, home_of, is_whole
from app.models.stores import scan_stores
from app.models.table import ModelFile, ModelRecord, ModelTable, builtin_table
from app.models.transfer import Stage, Transfer
from tests.models.stores import content_of, put_hugging_face, put_lm_studio, put_ollama, sha256_of

CONTENT = b"weights " * 9000


def record_of(*contents: bytes) -> ModelRecord:
    """Without a source: whatever is provided was found."""
    names = [f"m-{i:05}-of-{len(contents):05}.gguf" for i in range(1, len(contents) + 1)]
    files = (ModelFile(name, len(content), sha256_of(content)) for name, content in zip(names, contents, strict=True))
    return msgspec.structs.replace(builtin_table().models[0], key="test-model", files=tuple(files))


RECORD = record_of(CONTENT)


def quiet(_transfer: Transfer) -> None: ...


@pytest.mark.parametrize(
    ("put", "origin"),
    [
        (put_ollama, Origin.OLLAMA),
        (put_lm_studio, Origin.LM_STUDIO),
        (put_hugging_face, Origin.HUGGING_FACE),
    ],
)
async def test_a_stored_model_is_provided_from_where_it_is(put: Callable[[Path, bytes], Path], origin: Origin) -> None:
    path = put(Path.home(), CONTENT)
    before = content_of(Path.home())
    shelf = Shelf(ModelTable((RECORD,)))
    assert shelf.on_disk() == ()
    assert await shelf.provide(RECORD.key, quiet) == path == first_file(RECORD)
    assert shelf.on_disk() == (RECORD.key,)
    assert origin_of(RECORD.key, RECORD.files[0].name) is origin
    assert not home_of(RECORD, RECORD.files[0]).parent.exists(), "nothing was copied"
    assert content_of(Path.home()) == before


async def test_a_name_that_is_a_hash_needs_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    put_ollama(Path.home(), CONTENT)
    monkeypatch.setattr(hashing, "sha256_of", None)
    assert await adopt(RECORD, quiet)


async def test_a_file_without_a_hash_is_read_once_with_progress() -> None:
    put_lm_studio(Path.home(), CONTENT)
    other = record_of(CONTENT[::-1])
    told: list[Transfer] = []
    assert not await adopt(other, told.append)
    assert [(t.stage, t.done) for t in told] == [(Stage.CHECK, len(CONTENT))]
    told.clear()
    assert not await adopt(other, told.append)
    assert await adopt(RECORD, told.append)
    assert told == [], "it is known what the file is"


async def test_a_file_that_was_changed_is_read_again() -> None:
    path = put_lm_studio(Path.home(), CONTENT[::-1])
    assert not await adopt(RECORD, quiet)
    path.write_bytes(CONTENT)
    os.utime(path, ns=(1, 1))
    assert await adopt(RECORD, quiet)


async def test_a_file_that_was_changed_or_deleted_afterwards_is_not_used_any_more() -> None:
    path = put_ollama(Path.home(), CONTENT)
    assert await adopt(RECORD, quiet)
    os.utime(path, ns=(1, 1))
    assert not is_whole(RECORD)
    assert await adopt(RECORD, quiet), "its store says it is the same"
    path.unlink()
    assert not is_whole(RECORD)
    with pytest.raises(LinkError, match="no source"):
        await Shelf(ModelTable((RECORD,))).provide(RECORD.key, quiet)


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[::-1]], ids=["size", "hash"])
async def test_another_file_is_not_taken_for_it(content: bytes) -> None:
    for put in (put_ollama, put_lm_studio, put_hugging_face):
        put(Path.home(), content)
    assert not await adopt(RECORD, quiet)


def test_at_the_start_nothing_is_read() -> None:
    put_lm_studio(Path.home(), CONTENT)
    assert not adopt_known(RECORD, scan_stores())
    put_hugging_face(Path.home(), CONTENT)
    assert adopt_known(RECORD, scan_stores())


async def test_a_split_model_is_used_where_all_its_files_lie_side_by_side() -> None:
    record = record_of(CONTENT, CONTENT[::-1])
    first, second = record.files
    put_hugging_face(Path.home(), CONTENT, first.name, "c1")
    put_lm_studio(Path.home(), CONTENT[::-1], second.name)
    assert not await adopt(record, quiet)
    path = put_lm_studio(Path.home(), CONTENT, first.name)
    assert await adopt(record, quiet)
    assert first_file(record) == path


async def test_a_file_without_a_hash_in_the_table_is_never_matched() -> None:
    unknown = msgspec.structs.replace(RECORD, files=(ModelFile("m.gguf", len(CONTENT), ""),))
    put_ollama(Path.home(), CONTENT)
    assert not await adopt(unknown, quiet)
