"""Where weight files lie on this computer, and whether they are whole."""

from __future__ import annotations

from pathlib import Path

from app.core.errors import FileError
from app.core.paths import models_dir
from app.models.places import place_of
from app.models.table import ModelFile, ModelRecord


def folder_of(record: ModelRecord) -> Path:
    """The model's own folder; made when something is fetched into it."""
    return models_dir() / record.key


def home_of(record: ModelRecord, file: ModelFile) -> Path:
    """Where the file lies once it was fetched."""
    return folder_of(record) / file.name


def path_of(record: ModelRecord, file: ModelFile) -> Path:
    """Where the file lies: where it was fetched to, or where it was found on this computer."""
    home = home_of(record, file)
    return home if _size(home) == file.bytes else place_of(record.key, file.name) or home


def partial_of(record: ModelRecord, file: ModelFile) -> Path:
    """Where a file lies while only some of its ranges are there: under its own name, in a folder of such files."""
    return folder_of(record) / "partial" / file.name


def begun_downloads(record: ModelRecord, file: ModelFile) -> list[Path]:
    """Where downloads of the whole file leave its first part when they break off, one a source that is no archive."""
    names = (source.file.rsplit("/", 1)[-1] for source in file.sources if source.hub)
    return [folder_of(record) / f"{name}.download.part" for name in names]


def is_whole(record: ModelRecord) -> bool:
    """Whether every file is there in full; hashes were checked before a file got its name."""
    return all(is_file_whole(record, file) for file in record.files)


def is_file_whole(record: ModelRecord, file: ModelFile) -> bool:
    return _size(path_of(record, file)) == file.bytes


def first_file(record: ModelRecord) -> Path:
    """The file an engine opens; FileError when the model is not on this computer."""
    if not is_whole(record):
        raise FileError(f"{record.label} is not on this computer yet.", "Start it again to download it.")
    return path_of(record, record.files[0])


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
