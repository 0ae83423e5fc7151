"""The API's server as the window turns it: over a socket, with made-up answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from app.core.secrets import Place, Secrets
from app.core.settings import ServeSettings, load_settings
from app.serve.status import Phase
from app.ui.api_control import API_KEY, ApiControl
from app.ui.api_view import ApiView, ApiWish
from tests.serve.scripted import ScriptedAnswers

ANY = ApiWish(on=True, port=0)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))


class Shown:
    """A control, and what it showed last."""

    def __init__(self, answers: ScriptedAnswers, secrets: Secrets) -> None:
        self.control = ApiControl(answers, secrets)
        self._news = asyncio.Event()
        self.control.show = lambda _view: self._news.set()

    @property
    def view(self) -> ApiView:
        return self.control.view

    async def until(self, right: Callable[[ApiView], bool]) -> ApiView:
        async with asyncio.timeout(10):
            while not right(self.view):
                self._news.clear()
                await self._news.wait()
        return self.view


@pytest.fixture
def secrets() -> Iterator[Secrets]:
    made = Secrets({}, Place.FILE)
    yield made
    made.close()


@pytest_asyncio.fixture
async def shown(secrets: Secrets) -> AsyncIterator[Shown]:
    made = Shown(ScriptedAnswers(), secrets)
    yield made
    await made.control.close()


async def listed(view: ApiView, key: str = "any") -> int:
    address = f"http://127.0.0.1:{view.listening}/v1/models"
    headers = {"Authorization": f"Bearer {key}", "User-Agent": "codex/1"}
    async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as answer:
        return answer.status


async def test_it_listens_when_wished_and_tells_who_came(shown: Shown) -> None:
    shown.control.wish(ANY)
    view = await shown.until(lambda view: view.listening > 0)
    assert view.status.phase is Phase.WAITING
    assert await listed(view) == 200
    assert shown.view.words == "Codex is connected"
    shown.control.wish(ApiWish(on=False, port=0))
    await shown.until(lambda view: not view.listening)
    with pytest.raises(aiohttp.ClientError):
        await listed(view)


async def test_switch_port_and_key_are_there_after_a_restart(shown: Shown, secrets: Secrets) -> None:
    shown.control.wish(ApiWish(on=True, port=0, key="holt"))
    await shown.until(lambda view: view.listening > 0)
    assert load_settings().serve == ServeSettings(on=True, port=0)
    assert secrets.get(API_KEY) == "holt"
    await shown.control.close()
    again = Shown(ScriptedAnswers(), secrets)
    again.control.begin()
    view = await again.until(lambda view: view.listening > 0)
    assert (await listed(view), await listed(view, "holt")) == (401, 200)
    await again.control.close()


async def test_another_key_counts_at_once(shown: Shown) -> None:
    shown.control.wish(ANY)
    await shown.until(lambda view: view.listening > 0)
    shown.control.wish(ApiWish(on=True, port=0, key="holt"))
    await shown.until(lambda view: not view.listening)
    view = await shown.until(lambda view: view.listening > 0)
    assert await listed(view) == 401


async def test_a_busy_port_is_told_and_another_one_helps(shown: Shown) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        shown.control.wish(ApiWish(on=True, port=port))
        view = await shown.until(lambda view: bool(view.trouble))
    assert view.trouble == f"Port {port} is used by another program."
    assert "another port" in view.remedy
    assert view.listening == 0
    shown.control.wish(ANY)
    view = await shown.until(lambda view: view.listening > 0)
    assert view.trouble == view.remedy == ""


async def test_a_model_that_comes_and_goes_is_followed(secrets: Secrets) -> None:
    answers = ScriptedAnswers(model=None)
    shown = Shown(answers, secrets)
    shown.control.wish(ANY)
    view = await shown.until(lambda view: view.listening > 0)
    assert view.address is None
    answers.model = ScriptedAnswers().model
    shown.control.follow()
    assert shown.view.address is not None
    answers.model = None
    shown.control.follow()
    assert shown.view.address is None
    await shown.control.close()
