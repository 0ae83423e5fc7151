"""A room on the nano model, of two processes or of this one alone, and its API: what clients of others are tried on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.prompt.chat import Length, Style, Wording
from app.room import intents as it
from app.room.assembly import Application, Network, assemble
from app.room.ice import IceConfig
from app.room.planner import SplitMode
from app.room.settings import RoomSettings
from app.room.signal_servers import SignalServer
from app.room.state import Phase
from app.serve.config import ServeConfig
from app.serve.server import ApiServer
from tests.e2e.demo import let_in, open_room, second_device, start_model, until
from tests.e2e.rooms import table_with
from tests.room.loopback import offer_loopback, room_server

GB = 1.0
SETTINGS = RoomSettings(split=SplitMode.MEMORY, style=Style(wording=Wording.EXACT, length=Length.SHORT))


@dataclass(frozen=True)
class ServedRoom:
    """``url`` without a path."""

    url: str
    application: Application


@asynccontextmanager
async def served_room(model: Path, *, alone: bool = False) -> AsyncIterator[ServedRoom]:
    """``alone``: this process holds the whole model; else it is split over this one and another."""
    offer_loopback()
    with tempfile.TemporaryDirectory() as home:
        before = os.environ.get("POOLED_HOME")
        os.environ["POOLED_HOME"] = home
        try:
            async with room_server(5.0) as server, _room(server.label, model) as application:
                code = await open_room(application, GB)
                async with _beside(application, server, code, model, alone=alone):
                    await start_model(application, model.stem, devices=1 if alone else 2, fewest=1)
                    async with _serving(application) as served:
                        yield served
                    application.room.handle(it.Leave())
                    await until(application, lambda state: state.phase is Phase.START, "the end of the room")
        finally:
            os.environ.pop("POOLED_HOME")
            if before is not None:
                os.environ["POOLED_HOME"] = before


@asynccontextmanager
async def _beside(
    application: Application, server: SignalServer, code: str, model: Path, *, alone: bool
) -> AsyncIterator[None]:
    """The second device, if there is one."""
    if alone:
        yield
        return
    async with second_device(server, code, GB, 1, "--model", str(model), "--name", "heron") as second:
        await let_in(application, second)
        yield


@asynccontextmanager
async def _room(signal: str, model: Path) -> AsyncIterator[Application]:
    network = Network((signal,), IceConfig(stun=()), 1, cloud=False)
    application = await assemble(network, SETTINGS, table_with(model, model.stem), fixed_host=True)
    try:
        yield application
    finally:
        await application.close()


@asynccontextmanager
async def _serving(application: Application) -> AsyncIterator[ServedRoom]:
    api = ApiServer(application.room.answers, ServeConfig(port=0))
    await api.start()
    try:
        yield ServedRoom(f"http://127.0.0.1:{api.port}", application)
    finally:
        await api.stop()
