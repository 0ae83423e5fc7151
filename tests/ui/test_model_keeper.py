"""The models behind the page: real files in a folder of their own, downloads by hand."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from app.core.errors import LinkError
from app.core.secrets import Place, Secrets
from app.models.client import HUB_TOKEN
from app.models.places import Origin
from app.models.rows import take_file
from app.models.store import folder_of
from app.models.table import ModelRecord, builtin_table
from app.models.transfer import Tell, Transfer
from app.ui.model_keeper import WAITING, KeeperPorts, ModelKeeper
from app.ui.models_view import (
    AddFile,
    DropFile,
    Fetch,
    KeepToken,
    LookAgain,
    LookAt,
    ModelLine,
    ModelsView,
    Remove,
    StopFetch,
)
from tests.engine.models import Shape, write_model
from tests.models.stores import put

STARTER = builtin_table().models[0]


class Shelf:
    """A download that goes on when the test says so; ``fault`` is what ends it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tell: Tell = lambda _transfer: None
        self.go = asyncio.Event()
        self.fault: LinkError | None = None
        self.stopped = 0

    async def provide(self, key: str, tell: Tell) -> Path:
        self.asked.append(key)
        self.tell = tell
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if self.fault is not None:
            raise self.fault
        put_starter()
        return folder_of(STARTER)


def put_starter() -> None:
    """A file of the starter's size, of which nothing is written."""
    folder_of(STARTER).mkdir(parents=True, exist_ok=True)
    with (folder_of(STARTER) / STARTER.files[0].name).open("wb") as stream:
        stream.truncate(STARTER.files[0].bytes)


def size_of(path: Path) -> int:
    return path.stat().st_size


class Kept:
    """A keeper, and the views it showed."""

    def __init__(self) -> None:
        self.shelf, self.secrets = Shelf(), Secrets({}, Place.FILE)
        self.found = self.changed = 0
        ports = KeeperPorts(self.shelf, self._find, self._take, self._changed, self.secrets)
        self.keeper = ModelKeeper(ports)
        self.views: list[ModelsView] = []
        self._news = asyncio.Event()
        self.keeper.show = self._shown

    async def _find(self) -> None:
        self.found += 1

    async def _take(self, path: Path, tell: Tell) -> ModelRecord:
        return await take_file(path, tell)

    def _changed(self) -> None:
        self.changed += 1

    def _shown(self, view: ModelsView) -> None:
        self.views.append(view)
        self._news.set()

    async def until(self, right: Callable[[ModelsView], bool]) -> ModelsView:
        async with asyncio.timeout(10):
            while not right(self.keeper.view):
                self._news.clear()
                await self._news.wait()
        return self.keeper.view

    async def looked(self) -> ModelsView:
        self.keeper.wish(LookAgain())
        return await self.until(lambda view: not view.looking)

    @property
    def starter(self) -> ModelLine:
        return next(line for line in self.keeper.view.lines if line.key == STARTER.key)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path / "pooled"))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("own") / "Mine.gguf", Shape(layers=2, vocab=64, tied=False))


@pytest_asyncio.fixture
async def kept() -> AsyncIterator[Kept]:
    made = Kept()
    yield made
    await made.keeper.close()
    made.secrets.close()


async def test_the_list_is_shown_before_the_search_ends(kept: Kept) -> None:
    view = await kept.looked()
    assert [line.key for line in view.lines] == [record.key for record in builtin_table().models]
    assert kept.found == 1
    assert any(view.looking and view.lines for view in kept.views)
    assert view.free > 0
    assert kept.starter == ModelLine(
        STARTER.key, STARTER.label, STARTER.download_bytes, need_gb=0.6, licence="Apache-2.0"
    )


async def test_a_download_is_shown_and_what_came_of_it(kept: Kept) -> None:
    await kept.looked()
    kept.keeper.wish(Fetch(STARTER.key))
    kept.keeper.wish(Fetch(STARTER.key))
    assert kept.starter.job == WAITING
    await asyncio.sleep(0)
    told = Transfer(5, STARTER.download_bytes, 1.0, 9.0)
    kept.shelf.tell(told)
    assert kept.starter.job == told
    kept.shelf.go.set()
    await kept.until(lambda _view: kept.starter.whole and kept.starter.job is None)
    assert kept.shelf.asked == [STARTER.key]
    assert kept.changed == 1


async def test_a_download_is_stopped(kept: Kept) -> None:
    await kept.looked()
    kept.keeper.wish(Fetch(STARTER.key))
    await asyncio.sleep(0)
    kept.keeper.wish(StopFetch(STARTER.key))
    await kept.until(lambda _view: kept.starter.job is None)
    assert (kept.shelf.stopped, kept.starter.trouble) == (1, "")
    kept.keeper.wish(StopFetch(STARTER.key))
    kept.keeper.wish(Fetch(STARTER.key))
    assert kept.starter.job == WAITING


async def test_a_download_that_fails_says_why_until_it_is_tried_again(kept: Kept) -> None:
    await kept.looked()
    kept.shelf.fault = LinkError("The server answered 404: the file is gone.", "Update Pooled.")
    kept.shelf.go.set()
    kept.keeper.wish(Fetch(STARTER.key))
    await kept.until(lambda _view: kept.starter.job is None)
    assert kept.starter.trouble == "The server answered 404: the file is gone. Update Pooled."
    kept.keeper.wish(Fetch(STARTER.key))
    assert kept.starter.trouble == ""


async def test_a_fetched_model_is_deleted(kept: Kept) -> None:
    put_starter()
    await kept.looked()
    assert (kept.starter.whole, kept.starter.origin) == (True, Origin.FETCHED)
    kept.keeper.wish(Remove(STARTER.key))
    view = await kept.until(lambda view: bool(view.said))
    assert (kept.starter.here, kept.starter.origin, kept.starter.path) == (0, None, None)
    assert view.said.startswith(STARTER.label)
    assert kept.changed == 1


async def test_what_cannot_be_removed_says_why(kept: Kept) -> None:
    await kept.looked()
    kept.keeper.wish(Remove(STARTER.key))
    kept.keeper.wish(Remove("nothing of that name"))
    await kept.until(lambda _view: bool(kept.starter.trouble))
    assert kept.starter.trouble == "SmolLM2 135M is not on this computer."


async def test_a_file_becomes_a_model_and_is_let_go_again(kept: Kept, own: Path) -> None:
    await kept.looked()
    kept.keeper.wish(LookAt(own))
    assert kept.keeper.view.file is not None
    view = await kept.until(lambda view: view.file is not None and bool(view.file.label))
    assert view.file is not None
    assert (view.file.layers, view.file.bytes) == (2, size_of(own))
    kept.keeper.wish(AddFile())
    view = await kept.until(lambda view: view.file is not None and bool(view.file.key))
    line = view.lines[-1]
    assert view.file is not None
    assert (line.key, line.origin, line.path, line.own) == (view.file.key, Origin.OWN, own, True)
    kept.keeper.wish(Remove(line.key))
    view = await kept.until(lambda view: bool(view.said))
    assert view.said == f"{line.label} is off the list."
    assert line.key not in [each.key for each in view.lines]
    assert size_of(own) > 0


async def test_a_damaged_file_says_why(kept: Kept, tmp_path: Path) -> None:
    path = put(tmp_path / "broken.gguf", b"GGUF" + bytes(20))
    kept.keeper.wish(LookAt(path))
    view = await kept.until(lambda view: view.file is not None and bool(view.file.trouble))
    assert view.file is not None
    assert view.file.label == ""
    kept.keeper.wish(DropFile())
    assert kept.keeper.view.file is None


async def test_a_file_that_went_away_meanwhile(kept: Kept, own: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.gguf"
    shutil.copy(own, moved)
    kept.keeper.wish(LookAt(moved))
    await kept.until(lambda view: view.file is not None and bool(view.file.label))
    moved.unlink()
    kept.keeper.wish(AddFile())
    view = await kept.until(lambda view: view.file is not None and bool(view.file.trouble))
    assert view.file is not None
    assert "moved.gguf" in view.file.trouble


async def test_the_token_goes_to_the_secrets(kept: Kept) -> None:
    kept.keeper.wish(KeepToken("hf_otter"))
    assert kept.secrets.get(HUB_TOKEN) == "hf_otter"
    assert kept.keeper.view.token_kept
    kept.keeper.wish(KeepToken(""))
    assert not kept.keeper.view.token_kept


async def test_a_download_ends_with_the_program(kept: Kept) -> None:
    await kept.looked()
    kept.keeper.wish(Fetch(STARTER.key))
    await asyncio.sleep(0)
    await kept.keeper.close()
    assert kept.shelf.stopped == 1
