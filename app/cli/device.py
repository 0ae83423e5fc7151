"""What a verb needs of this computer: its settings, its secrets, and a whole device or one that only asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from app.cli.noise import kept_back
from app.cli.options import Entering, Lending
from app.core.clock import SystemClock
from app.core.errors import RoomError
from app.core.secrets import Secrets, open_secrets
from app.core.settings import Settings, load_settings, save_settings, settings_path
from app.engine.sampling import choose
from app.models.client import HUB_TOKEN
from app.models.table import ModelRecord, builtin_table
from app.prompt.language import Language
from app.room.assembly import Application, assemble, new_transport
from app.room.disk_memory import open_memory
from app.room.meta import Meta
from app.room.outside import RoomPorts
from app.room.preferences import network_of, room_settings
from app.room.room import Room

API_VERSION = 2


@dataclass(frozen=True)
class Device:
    settings: Settings
    secrets: Secrets
    application: Application


def settings_for(options: Entering) -> Settings:
    """The saved settings, their name kept from the first time on, and what the flags say over them."""
    saved = load_settings()
    if not settings_path().exists():
        save_settings(saved)
    changed = {"name": options.name, "signal": options.signal}
    return msgspec.structs.replace(saved, **{name: value for name, value in changed.items() if value})


@asynccontextmanager
async def whole_device(options: Lending, settings: Settings, *, fixed_host: bool) -> AsyncGenerator[Device]:
    """With its GPU, ready to open or join rooms."""
    async with opened_secrets() as secrets:
        application = await _assembled(options, settings, secrets, fixed_host=fixed_host)
        try:
            yield Device(settings, secrets, application)
        finally:
            await application.close()


async def _assembled(options: Lending, settings: Settings, secrets: Secrets, *, fixed_host: bool) -> Application:
    memory = await asyncio.to_thread(open_memory, secrets)
    with kept_back() as noise:
        application = await assemble(
            network_of(settings, secrets),
            room_settings(settings.room),
            passes=secrets.passes(),
            memory=memory,
            fixed_host=fixed_host,
            weights_from_room=lambda: settings.room_weights,
            hub_token=lambda: secrets.get(HUB_TOKEN),
        )
    if options.verbose or application.gpu is None:
        noise.show()
    return application


@asynccontextmanager
async def asking_room(settings: Settings, client: str) -> AsyncGenerator[Room]:
    """A room facade for a program: it lends nothing, and the room counts it as ``client``, not as a device."""
    async with opened_secrets() as secrets:
        network, clock = network_of(settings, secrets), SystemClock()
        room = Room(
            RoomPorts(
                new_transport=lambda linked, identity: new_transport(network, linked, identity, clock),
                compute=None,
                table=builtin_table(),
                open_language=_no_language,
                choose=choose,
                meta=Meta(ua="API", api=API_VERSION, client=client),
                clock=clock,
                passes=secrets.passes(),
            )
        )
        room.start()
        try:
            yield room
        finally:
            await room.close()


async def _no_language(_record: ModelRecord) -> Language:
    raise RoomError("A program that only asks runs no model.")


@asynccontextmanager
async def opened_secrets() -> AsyncGenerator[Secrets]:
    """Closed with the block, what was put into them kept."""
    secrets = await open_secrets()
    try:
        yield secrets
    finally:
        await asyncio.to_thread(secrets.close)
