"""A person's own files and those of other programs as rows of the table, by their headers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import gguf
import msgspec
import pytest

from app.core.errors import FileError, ModelError
from app.engine.gguf import TensorType
from app.models import rows
from app.models.describe import Described, describe, shown
from app.models.kept import Kept
from app.models.places import Origin, origin_of
from app.models.rows import forget_row, full_table, refresh, take_file
from app.models.shelf import Shelf
from app.models.store import first_file, is_whole
from app.models.table import ModelFile, ModelRecord, ModelTable, builtin_table
from app.models.transfer import Transfer
from tests.engine.models import Shape, write_model
from tests.models.stores import content_of, put, put_hugging_face, put_lm_studio, put_ollama, sha256_of
from tests.shared import shared_file

SHAPE = Shape(layers=2, vocab=64, tied=False)
NOTHING = ModelTable(())


def quiet(_transfer: Transfer) -> None: ...


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("own") / "My Model.gguf", SHAPE)


@pytest.fixture(scope="module")
def named(model: Path) -> Path:
    """The same with words of its own."""

    def words(writer: gguf.GGUFWriter) -> None:
        writer.add_name("Tiny\x1b[31m of\nmine")
        writer.add_license("apache-2.0")
        writer.add_chat_template("{{ messages }}")

    return rewritten(model, model.with_name("named.gguf"), words)


def rewritten(model: Path, path: Path, add: Callable[[gguf.GGUFWriter], None], tensors: slice = slice(None)) -> Path:
    """A copy with more metadata, or with some of the tensors only."""
    reader, writer = gguf.GGUFReader(str(model)), gguf.GGUFWriter(str(path), "llama")
    for key, value in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            writer.add_key_value(key, value.contents(), value.types[0], value.types[-1])
    add(writer)
    for tensor in reader.tensors[tensors]:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return path


def known_as(model: Path) -> ModelRecord:
    """A row of the build for this very file."""
    file = ModelFile("other name.gguf", model.stat().st_size, sha256_of(model.read_bytes()))
    return msgspec.structs.replace(builtin_table().models[0], key="known", files=(file,))


def copied(model: Path, folder: Path) -> Path:
    return put(folder / "mine.gguf", model.read_bytes())


def shape_of(described: Described) -> tuple[int, ...]:
    record = described.record
    return record.layers, record.hidden, record.heads, record.kv_heads, record.head_dim, record.vocab


def test_a_header_tells_the_sizes(model: Path) -> None:
    described = describe(model)
    record = described.record
    assert shape_of(described) == (2, 256, 4, 2, 64, 64)
    assert (record.label, described.quantisation, described.licence) == ("My Model · Q8_0", "Q8_0", "")
    weights = record.layers * record.layer_bytes + record.embed_bytes + record.output_bytes
    assert 0.9 < weights / record.download_bytes <= 1
    assert (record.files[0].name, record.files[0].bytes) == (f"{record.key}.gguf", model.stat().st_size)


def test_a_header_gives_its_own_words_and_they_are_cleaned(named: Path) -> None:
    described = describe(named)
    assert described.record.label == "Tiny [31m of mine · Q8_0"
    assert (described.licence, described.template) == ("apache-2.0", "{{ messages }}")
    assert described.record.key.startswith("tiny-31m-of-mine-")


def test_the_key_is_the_contents_and_not_the_places(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other name.gguf"
    copy.write_bytes(model.read_bytes())
    record = describe(copy).record
    assert record == msgspec.structs.replace(describe(model).record, label=record.label)


@pytest.mark.parametrize("family", ["qwen35", "qwen35moe"])
def test_hybrids_and_mixtures_have_their_shapes(family: str) -> None:
    record = describe(shared_file(f"models/tiny-{family}.gguf")).record
    assert record.hybrid
    assert record.recurrent is not None
    assert record.attention_interval == 4
    assert (record.experts is not None) == (family == "qwen35moe")
    if record.experts:
        assert 0 < record.experts.used < record.experts.count
        assert 0 < record.experts.layer_bytes < record.layer_bytes


@pytest.mark.parametrize(
    ("shape", "what"),
    [(Shape(family="clip"), "not supported"), (Shape(layers=1, types={"attn_q.weight": TensorType.F32}), "")],
)
def test_a_model_that_cannot_run_says_so(tmp_path: Path, shape: Shape, what: str) -> None:
    path = write_model(tmp_path / "m.gguf", shape)
    if what:
        with pytest.raises(ModelError, match=what):
            describe(path)
    else:
        assert describe(path).record.layers == 1


async def test_an_own_file_is_a_row_at_once_and_after_a_restart(model: Path) -> None:
    record = await take_file(model, quiet, NOTHING)
    assert full_table(NOTHING).get(record.key) == record
    assert is_whole(record)
    assert first_file(record) == model
    shelf = Shelf(full_table(NOTHING))
    assert await shelf.provide(record.key, quiet) == model
    assert origin_of(record.key, record.files[0].name) is Origin.OWN


async def test_a_file_of_the_table_is_the_tables_row(model: Path) -> None:
    known = known_as(model)
    assert await take_file(model, quiet, ModelTable((known,))) == known
    assert first_file(known) == model


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model", bytes(100_000)])
async def test_what_is_no_model_is_refused_and_makes_no_row(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "m.gguf", content)
    for wrong in (path, tmp_path, tmp_path / "none.gguf"):
        with pytest.raises(FileError):
            await take_file(wrong, quiet, NOTHING)
    assert full_table(NOTHING) == NOTHING


async def test_a_file_that_was_changed_or_moved_is_no_row_any_more(model: Path, tmp_path: Path) -> None:
    path = copied(model, tmp_path)
    record = await take_file(path, quiet, NOTHING)
    os.utime(path, ns=(1, 1))
    assert full_table(NOTHING) == NOTHING
    assert await take_file(path, quiet, NOTHING) == record
    os.remove(path)
    assert full_table(NOTHING) == NOTHING


async def test_a_row_that_is_forgotten_leaves_its_file(model: Path) -> None:
    record = await take_file(model, quiet, NOTHING)
    forget_row(record.key)
    assert full_table(NOTHING) == NOTHING
    assert describe(model).record == msgspec.structs.replace(record, own=False)


def test_models_of_other_programs_become_rows_by_their_own_names(model: Path) -> None:
    content = model.read_bytes()
    blob = put_ollama(Path.home(), content, "library/tiny/latest")
    before = content_of(Path.home())
    (record,) = refresh(NOTHING).models
    assert record.label == "tiny:latest · Q8_0"
    assert first_file(record) == blob
    assert content_of(Path.home()) == before


def test_a_model_of_two_stores_is_one_row_as_long_as_one_of_them_has_it(model: Path) -> None:
    blob, other = put_ollama(Path.home(), model.read_bytes()), put_lm_studio(Path.home(), model.read_bytes())
    (record,) = refresh(NOTHING).models
    assert first_file(record) == blob
    assert refresh(NOTHING).models == (record,)
    assert first_file(record) == blob
    blob.unlink()
    (record,) = refresh(NOTHING).models
    assert first_file(record) == other


def test_headers_are_read_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_ollama(Path.home(), model.read_bytes())
    put_lm_studio(Path.home(), b"GGUF but damaged")
    table = refresh(NOTHING)
    monkeypatch.setattr(rows, "describe", None)
    assert refresh(NOTHING) == table


def test_a_stored_file_of_the_table_makes_no_second_row(model: Path) -> None:
    content, known = model.read_bytes(), known_as(model)
    put_lm_studio(Path.home(), content)
    assert refresh(ModelTable((known,))).models == (known,)
    assert not is_whole(known), "nobody has read it yet"
    put_hugging_face(Path.home(), content)
    assert refresh(ModelTable((known,))).models == (known,)
    assert is_whole(known)


def split(model: Path, folder: Path) -> list[Path]:
    """The model in two files, all tensors in the first but one."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        rewritten(model, folder / f"tiny-{i:05}-of-00002.gguf", lambda w: w.add_uint16("split.count", 2), tensors)
        for i, tensors in ((1, slice(-1)), (2, slice(-1, None)))
    ]


def test_a_split_model_is_one_row_of_all_its_files(model: Path) -> None:
    first, second = split(model, Path.home() / ".lmstudio" / "models" / "a" / "b")
    (record,) = refresh(NOTHING).models
    assert [file.name for file in record.files] == [first.name, second.name]
    assert record.download_bytes == first.stat().st_size + second.stat().st_size
    second.unlink()
    assert refresh(NOTHING).models == ()


def test_names_are_one_line_of_printable_letters() -> None:
    assert shown(" a\tb\r\n\u202ec\x00 ", 20) == "a b c"
    assert shown("x" * 500, 20) == "x" * 20


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"x": 3}', b"\xff", b'{"x": {"key": 1}}'])
async def test_a_damaged_list_of_rows_is_made_anew(model: Path, damage: bytes) -> None:
    record = await take_file(model, quiet, NOTHING)
    for path in (Path.home() / "pooled" / "models").glob(".*.json"):
        path.write_bytes(damage)
    assert full_table(NOTHING) == NOTHING
    assert await take_file(model, quiet, NOTHING) == record
    assert full_table(NOTHING).models == (record,)


def test_a_table_that_cannot_be_written_keeps_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept("numbers", int)
    kept.put("one", 1)

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.models.kept.write_whole", full)
    kept.put("two", 2)
    assert kept.all() == {"one": 1}


def test_a_table_forgets_its_oldest_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.models.kept.MOST_ENTRIES", 2)
    kept = Kept("numbers", int)
    for number in range(4):
        kept.put(str(number), number)
    assert kept.all() == {"2": 2, "3": 3}
    kept.put("3", None)
    assert kept.all() == {"2": 2}
    assert kept.get("3") is None


def test_a_row_never_takes_the_place_of_one_of_this_build() -> None:
    starter: ModelRecord = builtin_table().models[0]
    assert full_table().get(starter.key) is starter
