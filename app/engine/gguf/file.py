"""A model file, or the parts of a split one, read by header only (GGUF v2 and v3; spec: engine §1.1)."""

from __future__ import annotations

import hashlib
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.errors import FileError, ModelError
from app.engine.gguf.cursor import Cursor
from app.engine.gguf.metadata import Metadata, read_metadata
from app.engine.gguf.types import BLOCKS, TensorType, row_bytes, supported

MAGIC = 0x46554747
VERSIONS = (2, 3)
MAX_TENSORS = 1_000_000
MAX_DIMS = 4
MAX_NAME_BYTES = 256
MAX_ALIGNMENT = 1 << 20
MAX_PARTS = 1000
_IDENTITY_BYTES = 1 << 20


@dataclass(frozen=True)
class TensorInfo:
    """Where one tensor lies. ``shape`` has the slowest axis first: (rows, columns) for a matrix.

    ``code`` is the GGUF type number, possibly one that cannot be computed with; ``kind`` checks it.
    """

    name: str
    shape: tuple[int, ...]
    code: int
    offset: int
    part: Path

    @property
    def kind(self) -> TensorType:
        return supported(self.code, self.name)

    @property
    def values(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return row_bytes(self.kind, self.values)

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def rows(self) -> int:
        return self.values // self.columns


class GgufFile:
    """Metadata and the union of all parts' tensor tables; nothing else of the file is in memory."""

    def __init__(self, metadata: Metadata, tensors: dict[str, TensorInfo], parts: list[Path]) -> None:
        self.metadata = metadata
        self.tensors = tensors
        self.parts = parts

    @staticmethod
    def header_bytes(path: Path) -> int:
        """Where the header of one part ends; FileError when it cannot be read, as where the rest of it is missing."""
        return _read_part(path)[2]

    @classmethod
    def open(cls, path: Path) -> GgufFile:
        """Reads the header of ``path`` and of every part it belongs with.

        Raises FileError for a damaged, foreign or incomplete file.
        """
        metadata, tensors, _ = _read_part(path)
        parts = _part_paths(path, metadata)
        if len(parts) > 1 and path != parts[0]:
            metadata, tensors, _ = _read_part(parts[0])
        for part in parts[1:]:
            tensors = tensors | _later_part(part, len(parts), tensors)
        _check_total(path, metadata, len(tensors), len(parts))
        return cls(metadata, tensors, parts)

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    @property
    def nbytes(self) -> int:
        return sum(part.stat().st_size for part in self.parts)

    def value(self, key: str, default: Any = None) -> Any:
        """A metadata value under the architecture's own prefix."""
        return self.metadata.get(f"{self.architecture}.{key}", default)

    def identity(self) -> str:
        """Names the file's content by its sizes and the first and last of its bytes."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self.parts:
            size = part.stat().st_size
            digest.update(size.to_bytes(8, "little"))
            with part.open("rb") as stream:
                for start, end in identity_extents(size):
                    stream.seek(start)
                    digest.update(stream.read(end - start))
        return digest.hexdigest()

    def tensor(self, name: str) -> TensorInfo:
        if name not in self.tensors:
            raise ModelError(
                f"The model file has no tensor {name}.",
                "It is a vocabulary or an incomplete export; get a complete file.",
            )
        return self.tensors[name]

    def read(self, tensor: TensorInfo, row: int = 0, rows: int | None = None) -> NDArray[np.uint8]:
        """The raw bytes of ``rows`` rows from ``row`` on; FileError if the file shrank meanwhile."""
        count = tensor.rows - row if rows is None else rows
        data = np.empty(count * row_bytes(tensor.kind, tensor.columns), np.uint8)
        self.read_into(tensor, row, data)
        return data

    def read_into(self, tensor: TensorInfo, row: int, data: NDArray[np.uint8]) -> None:
        """Fills ``data`` with the raw bytes from ``row`` on; FileError if the file shrank meanwhile."""
        view, done = data.data, 0
        with tensor.part.open("rb", buffering=0) as stream:
            stream.seek(tensor.offset + row * row_bytes(tensor.kind, tensor.columns))
            while done < data.size and (count := stream.readinto(view[done:])):
                done += count
        if done != data.size:
            raise FileError(f"{tensor.part.name} ended while it was read.", "Download the file again.")


def identity_extents(size: int) -> tuple[tuple[int, int], ...]:
    """The bytes [from, to) of a part of ``size`` bytes by which its content is named."""
    return (0, min(size, _IDENTITY_BYTES)), (max(size - _IDENTITY_BYTES, 0), size)


def _read_part(path: Path) -> tuple[Metadata, dict[str, TensorInfo], int]:
    """Also where the header ends."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            return _read_header(Cursor(stream, size, path.name), path, size)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise FileError(f"{path.name} cannot be read: {reason}.", "Check the path and its permissions.") from error


def _read_header(cursor: Cursor, path: Path, size: int) -> tuple[Metadata, dict[str, TensorInfo], int]:
    magic = cursor.u32()
    if magic == int.from_bytes(MAGIC.to_bytes(4, "little"), "big"):
        raise cursor.damaged("it is big-endian")
    if magic != MAGIC:
        raise cursor.damaged("it does not begin with the letters GGUF")
    version = cursor.u32()
    if version >= 1 << 24:
        raise cursor.damaged("it is big-endian")
    if version not in VERSIONS:
        raise cursor.damaged(f"version {version} is unknown, 2 and 3 are read")
    tensor_count, key_count = cursor.u64(), cursor.u64()
    if tensor_count > MAX_TENSORS:
        raise cursor.damaged(f"it announces {tensor_count} tensors")
    metadata = read_metadata(cursor, key_count)
    tensors = _read_tensors(cursor, tensor_count, _alignment(cursor, metadata), path, size)
    return metadata, tensors, cursor.position


def _alignment(cursor: Cursor, metadata: Metadata) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise cursor.damaged(f"its alignment {alignment} is not a power of two up to {MAX_ALIGNMENT}")
    return alignment


def _read_tensors(cursor: Cursor, count: int, alignment: int, path: Path, size: int) -> dict[str, TensorInfo]:
    entries = [_read_entry(cursor) for _ in range(count)]
    start = -(-cursor.position // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    for name, shape, code, offset in entries:
        if name in tensors:
            raise cursor.damaged(f"tensor {name} is listed twice")
        if offset % alignment:
            raise cursor.damaged(f"tensor {name} is not aligned to {alignment} bytes")
        tensors[name] = TensorInfo(name, shape, code, start + offset, path)
        _check_extent(cursor, tensors[name], size)
    return tensors


def _read_entry(cursor: Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.text(MAX_NAME_BYTES)
    dims = cursor.u32()
    if not 1 <= dims <= MAX_DIMS:
        raise cursor.damaged(f"tensor {name} has {dims} dimensions")
    shape = tuple(cursor.u64() for _ in range(dims))[::-1]
    if 0 in shape:
        raise cursor.damaged(f"tensor {name} has an empty dimension")
    return name, shape, cursor.u32(), cursor.u64()


def _check_extent(cursor: Cursor, tensor: TensorInfo, size: int) -> None:
    """Unknown types are only located: a file may carry tensors that are never used."""
    known = tensor.code in BLOCKS
    block = BLOCKS[TensorType(tensor.code)] if known else None
    if block and tensor.columns % block.values:
        raise cursor.damaged(f"rows of {tensor.name} are not whole blocks of {block.values}")
    end = tensor.offset + (row_bytes(TensorType(tensor.code), tensor.values) if block else 0)
    if end > size:
        raise cursor.damaged(f"tensor {tensor.name} ends at byte {end}, the file at {size}")


def _part_paths(path: Path, metadata: Metadata) -> list[Path]:
    count = metadata.get("split.count", 0)
    if not isinstance(count, int) or count <= 1:
        return [path]
    if count > MAX_PARTS:
        raise FileError(f"{path.name} claims to be one of {count} parts.", "Download the file again.")
    match = re.fullmatch(r"(.*)-\d{5}-of-(\d{5})\.gguf", path.name)
    if not match or int(match[2]) != count:
        raise FileError(
            f"{path.name} is one of {count} parts, but its name does not say which.",
            f"Name the parts NAME-00001-of-{count:05}.gguf and so on.",
        )
    parts = [path.with_name(f"{match[1]}-{i:05}-of-{count:05}.gguf") for i in range(1, count + 1)]
    missing = [part.name for part in parts if not part.exists()]
    if missing:
        raise FileError(f"{path.name} needs {missing[0]}, which is not there.", "Download the missing part.")
    return parts


def _later_part(part: Path, count: int, known: dict[str, TensorInfo]) -> dict[str, TensorInfo]:
    metadata, tensors, _ = _read_part(part)
    if metadata.get("split.count") != count:
        raise FileError(f"{part.name} belongs to another model.", "Download all parts again.")
    repeated = known.keys() & tensors.keys()
    if repeated:
        raise FileError(f"{part.name} repeats tensor {min(repeated)}.", "Download all parts again.")
    return tensors


def _check_total(path: Path, metadata: Metadata, found: int, parts: int) -> None:
    expected = metadata.get("split.tensors.count")
    if parts > 1 and isinstance(expected, int) and expected != found:
        raise FileError(f"{path.name} and its parts hold {found} tensors of {expected}.", "Download all parts again.")
