"""A room of ours on PeerJS's own server, and a browser with PeerJS's own client as a guest in it."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest
from aiohttp import web

from app.prompt.chat import UserTurn
from app.room import intents as it
from app.room.invite import parse_invite
from app.room.room import Room
from app.room.signal_servers import SignalServer
from app.room.state import Phase
from tests.room.loopback import use_loopback
from tests.room.test_rooms import MOST, prompt, words
from tests.room.test_rooms_over_network import device, until
from tests.room.toy import one_device

HERE = Path(__file__).parent / "peerjs"
SERVER = HERE / "node_modules" / "peer" / "dist" / "bin" / "peerjs.js"
CLIENT = HERE / "node_modules" / "peerjs" / "dist" / "peerjs.min.js"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
QUESTION = "From a browser?"
LIMIT_S = 60.0
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad",
    "--no-proxy-server", "--allow-loopback-in-peer-connection", "--disable-features=WebRtcHideLocalIpsWithMdns",
)  # fmt: skip

_missing = [
    name
    for name, there in (("node", shutil.which("node")), ("a Chromium", BROWSER), (str(SERVER), SERVER.exists()))
    if not there
]
pytestmark = pytest.mark.skipif(bool(_missing), reason=f"needs {', '.join(_missing)}: scripts/setup.sh test brings it")


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def program(*command: str) -> AsyncGenerator[Process]:
    """A process that is gone afterwards, with all it started."""
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for member in family:
                with suppress(psutil.NoSuchProcess):
                    member.kill()
            await asyncio.to_thread(psutil.wait_procs, family, 5)
        await process.wait()


@asynccontextmanager
async def peer_server() -> AsyncGenerator[SignalServer]:
    port = free_port()
    command = ("node", str(SERVER), "--port", str(port), "--host", "127.0.0.1", "--path", "/pooled")
    async with program(*command):
        for _ in range(500):
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            await asyncio.sleep(0.02)
        yield SignalServer("127.0.0.1", port, secure=False, path="/pooled/")


class Page:
    """The guest's page, and what it tells."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.address = ""

    def last(self, event: str) -> dict[str, Any] | None:
        assert not self.problems, self.problems
        return next((said for said in reversed(self.said) if said["event"] == event), None)

    @property
    def problems(self) -> list[dict[str, Any]]:
        return [said for said in self.said if said["event"] in ("error", "bye")]

    async def hear(self, request: web.Request) -> web.Response:
        self.said.append(json.loads(await request.text()))
        return web.Response()


@asynccontextmanager
async def guest(server: SignalServer, code: str, key: str = "") -> AsyncGenerator[Page]:
    """A browser on its way into the room."""
    page, application = Page(), web.Application()
    application.router.add_post("/said", page.hear)
    for name, path in (("page.html", HERE), ("guest.js", HERE), (CLIENT.name, CLIENT.parent)):
        application.router.add_get(f"/{name}", _file(path / name))
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    query = urlencode({"code": code, "key": key, "port": server.port, "question": QUESTION})
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/page.html?{query}"
    profile = tempfile.mkdtemp(prefix="pooled-browser-")
    try:
        async with program(BROWSER, *FLAGS, f"--user-data-dir={profile}", address):
            yield page
    finally:
        await runner.cleanup()
        shutil.rmtree(profile, ignore_errors=True)


def _file(path: Path) -> Any:
    async def answer(_request: web.Request) -> web.FileResponse:
        return web.FileResponse(path)

    return answer


@asynccontextmanager
async def online_room(server: SignalServer) -> AsyncGenerator[Room]:
    room = device(server)
    try:
        room.handle(it.OpenRoom("otter", 4))
        await until(lambda: room.state.invite is not None)
        room.handle(it.Start())
        await until(lambda: room.state.phase is Phase.ONLINE)
        yield room
    finally:
        await room.close()


async def _answered(page: Page) -> None:
    await until(lambda: page.last("answer") is not None)
    said = page.last("answer")
    assert said is not None
    assert said["text"] == words(one_device(prompt(UserTurn(QUESTION)), MOST, []))


async def test_a_browser_with_the_key_is_let_in_and_answered() -> None:
    async with asyncio.timeout(LIMIT_S), peer_server() as server, online_room(server) as room:
        assert room.state.invite is not None
        key = parse_invite(room.state.invite.link).key
        async with guest(server, room.state.code, key) as page:
            await until(lambda: page.last("admitted") is not None)
            admitted = page.last("admitted")
            assert admitted is not None
            assert admitted["verified"], "the creator proved the key, too"
            assert admitted["pass"]
            assert not room.state.waiting
            await _answered(page)
            assert page.last("roster") == {"event": "roster", "names": ["otter", "visitor"]}
            assert room.state.transcript[-1].asker == "visitor"


async def test_a_browser_without_the_key_waits_for_allow() -> None:
    async with asyncio.timeout(LIMIT_S), peer_server() as server, online_room(server) as room:
        async with guest(server, room.state.code) as page:
            await until(lambda: bool(room.state.waiting) and page.last("lobby") is not None)
            request, lobby = room.state.waiting[0], page.last("lobby")
            assert lobby is not None
            assert (request.name, request.digits) == ("visitor", lobby["digits"])
            assert page.last("roster") is None, "nobody who waits outside sees who is inside"
            room.handle(it.Allow(request.id))
            await _answered(page)
        await until(lambda: len(room.state.devices) == 1)


async def test_a_browser_with_a_wrong_key_stays_outside() -> None:
    async with asyncio.timeout(LIMIT_S), peer_server() as server, online_room(server) as room:
        async with guest(server, room.state.code, "x" * 22) as page:
            await until(lambda: bool(room.state.waiting) and page.last("lobby") is not None)
            room.handle(it.Deny(room.state.waiting[0].id))
            await until(lambda: bool(page.problems))
            assert [said["event"] for said in page.said] == ["lobby", "bye"]
        assert len(room.state.devices) == 1
