"""Headers: whole, split, damaged and hostile. Each case of spec field reports B1 has its right value here."""

import struct
from pathlib import Path

import pytest

from app.core.errors import FileError, ModelError
from app.engine.gguf import GgufFile, TensorType
from app.engine.gguf.types import type_name

ALIGN = 32


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name: str, kind: int, payload: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + payload


def tensor(name: str, dims: list[int], code: int = 0, offset: int = 0) -> bytes:
    return (
        text(name)
        + struct.pack("<I", len(dims))
        + struct.pack(f"<{len(dims)}Q", *dims)
        + struct.pack("<IQ", code, offset)
    )


def header(
    tensors: list[bytes], keys: list[bytes], version: int = 3, magic: bytes = b"GGUF",
    count: int | None = None, key_count: int | None = None,
) -> bytes:  # fmt: skip
    counts = struct.pack("<QQ", len(tensors) if count is None else count, len(keys) if key_count is None else key_count)
    return magic + struct.pack("<I", version) + counts + b"".join(keys) + b"".join(tensors)


def write(path: Path, head: bytes, data: bytes = b"") -> Path:
    path.write_bytes(head + b"\0" * (-len(head) % ALIGN) + data)
    return path


def refuse(path: Path, words: str) -> None:
    with pytest.raises(FileError, match=words):
        GgufFile.open(path)


def test_reads_metadata_and_tensors(tmp_path: Path) -> None:
    keys = [
        key("general.architecture", 8, text("llama")),
        key("llama.block_count", 4, struct.pack("<I", 3)),
        key("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("é")),
        key("llama.flags", 9, struct.pack("<IQ", 7, 2) + b"\1\0"),
        key("llama.eps", 6, struct.pack("<f", 0.5)),
    ]
    data = struct.pack("<6f", *range(6))
    for version in (2, 3):
        file = GgufFile.open(write(tmp_path / "a.gguf", header([tensor("w", [3, 2])], keys, version), data))
        assert file.architecture == "llama"
        assert file.value("block_count") == 3
        assert file.metadata["tokenizer.ggml.tokens"] == ["a", "é"]
        assert file.metadata["llama.flags"] == [True, False]
        assert file.value("eps") == 0.5
        info = file.tensor("w")
        assert (info.shape, info.kind, info.rows, info.columns) == ((2, 3), TensorType.F32, 2, 3)
        assert file.read(info, 1).view("<f4").tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (header([], [], magic=b"GGML"), "letters GGUF"),
        (header([], [], magic=b"FUGG"), "big-endian"),
        (header([], [], version=1 << 24), "big-endian"),
        (header([], [], version=1), "version 1"),
        (header([], [], count=1 << 60), "tensors"),
        (header([], [], key_count=1 << 60), "metadata keys"),
        (header([], [], count=5), "empty|dimensions|promises|ends"),
        (header([tensor("w", [])], []), "0 dimensions"),
        (header([tensor("w", [2] * 9)], []), "9 dimensions"),
        (header([tensor("w", [4, 0])], []), "empty dimension"),
        (header([tensor("w", [(1 << 42) + 1, 1 << 42])], []), "ends at byte"),
        (header([tensor("w", [1 << 63, 2])], []), "ends at byte"),
        (header([tensor("w", [4], 0, 1 << 62)], []), "ends at byte"),
        (header([tensor("w", [4], 0, 7)], []), "aligned"),
        (header([tensor("w", [33], 8)], []), "whole blocks"),
        (header([tensor("w", [4]), tensor("w", [4])], []), "listed twice"),
        (header([tensor("w" * 300, [4])], []), "text of 300"),
        (header([], [key("general.alignment", 4, struct.pack("<I", 0))]), "alignment 0"),
        (header([], [key("general.alignment", 4, struct.pack("<I", 1 << 30))]), "alignment"),
        (header([], [key("general.alignment", 4, struct.pack("<I", 48))]), "alignment 48"),
        (header([], [key("a", 8, struct.pack("<Q", 1 << 30))]), "text of 1073741824"),
        (header([], [key("a", 9, struct.pack("<IQ", 8, 15_000_000))]), "texts"),
        (header([], [key("a", 9, struct.pack("<IQ", 4, 1 << 61))]), "list of"),
        (header([], [key("a", 9, struct.pack("<IQ", 9, 1))]), "list of type 9"),
        (header([], [key("a", 77, b"")]), "type 77"),
        (header([], [key("a", 8, struct.pack("<Q", 2) + b"\xff\xff")]), "UTF-8"),
    ],
)
def test_damaged_headers_are_refused_with_the_reason(tmp_path: Path, head: bytes, words: str) -> None:
    refuse(write(tmp_path / "bad.gguf", head, b"\0" * 64), words)


def test_a_header_cut_anywhere_is_refused(tmp_path: Path) -> None:
    keys = [key("general.architecture", 8, text("llama")), key("k", 9, struct.pack("<IQ", 8, 1) + text("x"))]
    whole = header([tensor("w", [4])], keys)
    for length in range(len(whole)):
        path = tmp_path / "cut.gguf"
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            GgufFile.open(path)


def test_unreadable_files_are_typed_errors(tmp_path: Path) -> None:
    refuse(tmp_path / "missing.gguf", "cannot be read")
    refuse(tmp_path, "cannot be read")


def test_unknown_types_are_listed_and_refused_by_name_only_when_used(tmp_path: Path) -> None:
    head = header([tensor("odd", [4], 16), tensor("w", [4], 0)], [])
    file = GgufFile.open(write(tmp_path / "a.gguf", head, b"\0" * 64))
    assert type_name(file.tensor("odd").code) == "IQ2_XXS"
    with pytest.raises(ModelError, match="odd is stored as IQ2_XXS"):
        _ = file.tensor("odd").kind
    assert file.tensor("w").kind is TensorType.F32
    with pytest.raises(ModelError, match="no tensor token_embd"):
        file.tensor("token_embd.weight")


def part(path: Path, number: int, count: int, name: str, total: int = 2) -> Path:
    keys = [
        key("split.no", 2, struct.pack("<H", number)),
        key("split.count", 2, struct.pack("<H", count)),
        key("split.tensors.count", 5, struct.pack("<i", total)),
    ]
    if number == 0:
        keys.append(key("general.architecture", 8, text("llama")))
    return write(path, header([tensor(name, [2])], keys), struct.pack("<2f", number, 1))


def test_split_files_are_one_model_from_any_part(tmp_path: Path) -> None:
    first = part(tmp_path / "m-00001-of-00002.gguf", 0, 2, "a")
    second = part(tmp_path / "m-00002-of-00002.gguf", 1, 2, "b")
    for path in (first, second):
        file = GgufFile.open(path)
        assert file.architecture == "llama"
        assert sorted(file.tensors) == ["a", "b"]
        assert file.read(file.tensor("b")).view("<f4").tolist() == [1, 1]
        assert file.nbytes == first.stat().st_size + second.stat().st_size


def test_split_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    first = part(tmp_path / "m-00001-of-00002.gguf", 0, 2, "a")
    refuse(first, "m-00002-of-00002.gguf")
    part(tmp_path / "m-00002-of-00002.gguf", 1, 2, "a")
    refuse(first, "repeats tensor a")
    part(tmp_path / "m-00002-of-00002.gguf", 1, 3, "b")
    refuse(first, "another model")
    part(tmp_path / "m-00002-of-00002.gguf", 1, 2, "b")
    refuse(part(tmp_path / "m-00001-of-00002.gguf", 0, 2, "a", total=5), "2 tensors of 5")
    refuse(part(tmp_path / "renamed.gguf", 0, 2, "a"), "does not say which")


def test_a_file_that_shrinks_while_read_is_a_typed_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", header([tensor("w", [64])], []), b"\0" * 256)
    file = GgufFile.open(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="ended while"):
        file.read(file.tensor("w"))
