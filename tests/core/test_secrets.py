"""Secrets go to the key store or into a private file, come back, and are never waited for or shown."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringError

from app.core import secrets as module
from app.core.secrets import MOST_PASSES, Place, Secrets, open_secrets, secrets_path

PASS = "AbCdEfGhIjKlMnOpQrStUv"


class KeyStore(KeyringBackend):
    """A key store in memory; ``hold`` makes it as silent as one that waits for its password."""

    priority = 5  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.hold = threading.Event()
        self.hold.set()
        self.refuses = False

    def get_password(self, service: str, username: str) -> str | None:
        self.hold.wait(10)
        if self.refuses:
            raise KeyringError("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.refuses:
            raise KeyringError("locked")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


@pytest.fixture
def store() -> KeyStore:
    store = KeyStore()
    keyring.set_keyring(store)
    return store


async def test_the_key_store_is_used_where_there_is_one(store: KeyStore) -> None:
    secrets = await open_secrets()
    secrets.put("relay password", "hidden words")
    secrets.close()
    assert secrets.where() is Place.KEY_STORE
    assert not secrets_path().exists()
    again = await open_secrets()
    assert again.get("relay password") == "hidden words"
    assert len(store.kept) == 1


async def test_without_a_key_store_a_private_file_is_used() -> None:
    keyring.set_keyring(NoKeyring())
    secrets = await open_secrets()
    secrets.passes().put("4TKG9P", PASS)
    secrets.close()
    assert secrets.where() is Place.FILE
    assert (await open_secrets()).passes().get("4TKG9P") == PASS
    if os.name == "posix":
        assert stat.S_IMODE(secrets_path().stat().st_mode) == 0o600
        assert stat.S_IMODE(secrets_path().parent.stat().st_mode) == 0o700


async def test_a_locked_key_store_gives_way_to_the_file(store: KeyStore) -> None:
    store.refuses = True
    assert (await open_secrets()).where() is Place.FILE


async def test_a_key_store_that_locks_later_loses_nothing(store: KeyStore) -> None:
    secrets = await open_secrets()
    store.refuses = True
    secrets.put("a", "b")
    secrets.close()
    assert secrets.where() is Place.FILE
    assert json.loads(secrets_path().read_text()) == {"a": "b"}


async def test_a_silent_key_store_holds_neither_the_start_nor_the_loop(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_WITHIN", 0.1)
    store.hold.clear()
    began, turns = time.monotonic(), 0
    opening = asyncio.create_task(open_secrets())
    while not opening.done():
        await asyncio.sleep(0.005)
        turns += 1
    store.hold.set()
    assert opening.result().where() is Place.FILE
    assert time.monotonic() - began < 2
    assert turns > 5


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 1, "pass X": "p"}', "\x00" * 10, "[" * 100_000])
async def test_a_damaged_file_is_no_reason_to_stop(content: str) -> None:
    keyring.set_keyring(NoKeyring())
    secrets_path().parent.mkdir()
    secrets_path().write_text(content)
    secrets = await open_secrets()
    assert secrets.get("a") == ""


async def test_the_oldest_passes_go_and_all_fit_into_the_smallest_key_store(store: KeyStore) -> None:
    secrets = await open_secrets()
    passes = secrets.passes()
    secrets.put("relay password", "x" * 60)
    for number in range(MOST_PASSES + 5):
        passes.put(f"CODE{number:02}", PASS)
    passes.put("CODE05", PASS[::-1])
    passes.put("CODEXX", PASS)
    secrets.close()
    assert [passes.get(f"CODE{number:02}") for number in (0, 4, 6)] == ["", "", ""]
    assert passes.get("CODE05") == PASS[::-1]
    assert secrets.get("relay password") == "x" * 60
    assert len(next(iter(store.kept.values()))) < 1280


def test_nothing_secret_is_shown() -> None:
    secrets = Secrets({"relay password": "hidden words"}, Place.FILE)
    assert "hidden" not in f"{secrets!r} {secrets} {secrets.passes()!r}"
    secrets.close()


def test_a_value_too_long_for_a_key_is_not_kept() -> None:
    secrets = Secrets({}, Place.FILE)
    secrets.put("a", "x" * 201)
    secrets.close()
    assert secrets.get("a") == ""
