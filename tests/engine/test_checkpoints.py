"""Copies on disk are whole, their owner's alone and within their cap, or they are missing."""

import errno
import logging
import os
import stat
import time
from pathlib import Path

import numpy as np
import pytest

from app.engine.checkpoints import CheckpointStore, Copy, CopyKey, hash_ids

KEY = CopyKey("ABCDEF", "7", "model/0-4/f16")


def copy(size: int = 1000, seed: int = 1, end: int = 33) -> Copy:
    data = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
    return Copy(end, data, b"a note", hash_ids([1, 2, 3]))


def key(name: str, room: str = "ABCDEF") -> CopyKey:
    return CopyKey(room, name, KEY.signature)


def aged(folder: Path, which: CopyKey, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / which.file_name, (then, then))


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "copies")


@pytest.mark.parametrize("size", [0, 1, 100_001])
def test_a_copy_comes_back_byte_for_byte(store: CheckpointStore, size: int) -> None:
    written = copy(size)
    assert store.write(KEY, written)
    got = store.read(KEY)
    assert got is not None
    assert np.array_equal(got.data, written.data)
    assert (got.end, got.note, got.ids_hash) == (33, b"a note", written.ids_hash)


def test_another_room_signature_or_name_finds_nothing(store: CheckpointStore) -> None:
    store.write(KEY, copy())
    for other in (CopyKey("ABCDEG", "7", KEY.signature), CopyKey("ABCDEF", "7", "other"), key("8")):
        assert store.read(other) is None
    assert store.read(KEY)


def test_a_file_under_a_wrong_name_is_no_copy(store: CheckpointStore, tmp_path: Path) -> None:
    store.write(KEY, copy())
    (tmp_path / "copies" / KEY.file_name).rename(tmp_path / "copies" / key("8").file_name)
    assert store.read(key("8")) is None


@pytest.mark.parametrize("at", [0, 5, 12, 40, -1001, -500, -1])
def test_a_damaged_copy_is_missing_and_removed_with_one_line(
    store: CheckpointStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, at: int
) -> None:
    store.write(KEY, copy())
    path = tmp_path / "copies" / KEY.file_name
    content = bytearray(path.read_bytes())
    content[at] ^= 0x41
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert store.read(KEY) is None
    assert len(caplog.records) == 1
    assert not path.exists()


@pytest.mark.parametrize("kept", [0, 3, 8, 200, -1])
def test_a_copy_cut_short_is_missing(store: CheckpointStore, tmp_path: Path, kept: int) -> None:
    store.write(KEY, copy())
    path = tmp_path / "copies" / KEY.file_name
    path.write_bytes(path.read_bytes()[:kept])
    assert store.read(KEY) is None


def test_names_are_newest_first(store: CheckpointStore, tmp_path: Path) -> None:
    for age, name in ((30, "1"), (10, "2"), (20, "3")):
        store.write(key(name), copy())
        aged(tmp_path / "copies", key(name), age)
    store.write(key("4", room="OTHER"), copy())
    assert store.names("ABCDEF", KEY.signature) == ["2", "3", "1"]
    assert store.names("ABCDEF", "other") == []


def test_the_oldest_make_room_and_other_rooms_first(tmp_path: Path) -> None:
    one = CheckpointStore(tmp_path)
    one.write(KEY, copy())
    size = (tmp_path / KEY.file_name).stat().st_size
    one.drop(KEY)
    store = CheckpointStore(tmp_path, cap=4 * size + 100)
    for age, name, room in ((40, "1", "ABCDEF"), (30, "2", "ABCDEF"), (20, "3", "OTHERS"), (10, "4", "OTHERS")):
        assert store.write(key(name, room), copy())
        aged(tmp_path, key(name, room), age)
    for name, gone in (("5", ("3", "OTHERS")), ("6", ("4", "OTHERS")), ("7", ("1", "ABCDEF"))):
        assert store.write(key(name), copy())
        assert store.read(key(*gone)) is None
    assert store.read(key("2"))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4 * size + 100


def test_what_is_larger_than_the_cap_is_not_written(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, cap=500)
    assert not store.write(KEY, copy(1000))
    assert list(tmp_path.iterdir()) == []


def test_a_rewrite_that_fails_leaves_nothing_old(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(KEY, copy(seed=1))

    def refuse(*_args: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", refuse)
    assert not store.write(KEY, copy(seed=2))
    assert store.read(KEY) is None


def test_a_full_disk_gets_a_second_try_without_the_oldest(
    store: CheckpointStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(key("1"), copy())
    aged(tmp_path / "copies", key("1"), 50)
    store.write(key("2", room="OTHERS"), copy())
    full, sync = [True], os.fsync

    def once(descriptor: int) -> None:
        if full.pop() if full else False:
            raise OSError(errno.ENOSPC, "full")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", once)
    assert store.write(KEY, copy())
    assert store.read(KEY)
    assert store.read(key("2", room="OTHERS")) is None
    assert [path.suffix for path in (tmp_path / "copies").iterdir()].count(".part") == 0


def test_only_the_owner_reads_it(store: CheckpointStore, tmp_path: Path) -> None:
    store.write(KEY, copy())
    assert stat.S_IMODE((tmp_path / "copies" / KEY.file_name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "copies").stat().st_mode) == 0o700


def test_a_room_is_forgotten_whole_and_old_parts_go(store: CheckpointStore, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    store.write(KEY, copy())
    store.write(CopyKey("ABCDEF", "7", "other layers"), copy())
    old, new = folder / "x.part", folder / "y.part"
    old.touch()
    new.touch()
    os.utime(old, (1, 1))
    store.write(key("1", room="OTHERS"), copy())
    assert not old.exists()
    assert new.exists()
    store.drop_room("ABCDEF")
    assert store.read(KEY) is None
    assert store.read(key("1", room="OTHERS"))


def test_a_folder_that_cannot_be_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = CheckpointStore(tmp_path / "file" / "copies")
    assert not store.write(KEY, copy())
    assert store.read(KEY) is None
    assert store.names("ABCDEF", KEY.signature) == []
