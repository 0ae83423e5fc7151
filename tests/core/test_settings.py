"""Settings survive a damaged file, a full disk and another version."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from app.core import files
from app.core.animals import ANIMALS, random_name
from app.core.errors import FileError
from app.core.settings import RelaySettings, RoomDefaults, Settings, load_settings, save_settings, settings_path

SOME = Settings(
    name="heron",
    pledge_gb=3.5,
    theme="dark",
    signal=("cloud", "rooms.example:9000/p"),
    relay=RelaySettings("turn:relay.example", "me", only=True),
    room=RoomDefaults(ask_first=False, visibility="host"),
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))


def test_what_is_saved_is_read_again() -> None:
    save_settings(SOME)
    assert load_settings() == SOME


def test_the_first_start_gives_a_name_of_an_animal() -> None:
    settings = load_settings()
    assert settings.name in ANIMALS
    assert msgspec.structs.replace(settings, name="") == Settings()


def test_another_name_is_another_animal_that_can_be_said_and_typed() -> None:
    assert all(random_name("otter") != "otter" for _ in range(300))
    assert len(set(ANIMALS)) == len(ANIMALS) >= 80
    assert all(name.isalpha() and name.islower() and len(name) <= 20 for name in ANIMALS)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"theme":"purple"}',
        b'{"name":3}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"signal":"cloud"}',
        b'{"pledge_gb":1e300}',
    ],
)
def test_a_damaged_file_gives_the_defaults_and_is_kept_aside(content: bytes) -> None:
    settings_path().write_bytes(content)
    assert msgspec.structs.replace(load_settings(), name="") == Settings()
    assert not settings_path().exists()
    assert settings_path().with_suffix(".json.damaged").read_bytes() == content


def test_what_another_version_saved_beside_it_does_no_harm() -> None:
    settings_path().write_bytes(b'{"name":"heron","later":{"a":1},"room":{"unknown":2}}')
    assert load_settings() == Settings(name="heron")


def test_a_full_disk_leaves_the_old_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    save_settings(SOME)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(FileError, match="No space left"):
        save_settings(Settings(name="otter"))
    assert load_settings() == SOME
    assert [path.name for path in settings_path().parent.iterdir()] == ["settings.json"]


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_settings_are_for_their_owner_only() -> None:
    save_settings(SOME)
    assert stat.S_IMODE(settings_path().stat().st_mode) == 0o600
