"""Puts together what the window needs around a room. What each part is made of is decided below ``ui``."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

import msgspec

from app.core.secrets import Secrets, open_secrets
from app.core.settings import load_settings, save_settings
from app.models.client import HUB_TOKEN
from app.models.store import is_whole
from app.models.table import Models
from app.room.assembly import Application, assemble
from app.room.compute import GpuSummary
from app.room.disk_memory import open_memory
from app.room.preferences import (
    RELAY_PASSWORD,
    RELAY_SECRET,
    network_of,
    pledge_of,
    room_defaults,
    room_settings,
    surroundings,
)
from app.room.settings import RoomSettings
from app.ui.api_control import ApiControl
from app.ui.api_view import ApiWish
from app.ui.model_keeper import KeeperPorts, ModelKeeper
from app.ui.models_view import ModelWish
from app.ui.nearby_watch import NearbyWatch
from app.ui.sheets.relay import RelayWish
from app.ui.this_device import ThisDevice


@dataclass
class Sharing:
    """Whether weights are taken from and given to devices of the room, as the person has it now."""

    on: bool


@dataclass
class Composed:
    """A room ready to be opened or joined, and what this computer can lend to it."""

    application: Application
    secrets: Secrets
    device: ThisDevice
    nearby: NearbyWatch
    sharing: Sharing
    api: ApiControl
    models: ModelKeeper

    def wish(self, wish: ApiWish | ModelWish) -> None:
        """What a person wants of the API, or of the models on this computer."""
        if isinstance(wish, ApiWish):
            self.api.wish(wish)
        else:
            self.models.wish(wish)

    def remember(self, settings: RoomSettings) -> None:
        """The next room opened here starts with these."""
        save_settings(msgspec.structs.replace(load_settings(), room=room_defaults(settings)))

    def share_weights(self, on: bool) -> None:
        """From the next file on."""
        self.sharing.on = on
        save_settings(msgspec.structs.replace(load_settings(), room_weights=on))

    def use_relay(self, wish: RelayWish) -> None:
        """From the next room on."""
        save_settings(msgspec.structs.replace(load_settings(), relay=wish.settings))
        for name, text in ((RELAY_PASSWORD, wish.password), (RELAY_SECRET, wish.secret)):
            if text is not None:
                self.secrets.put(name, text)

    async def close(self) -> None:
        """Leaves the room and ends everything."""
        await self.nearby.close()
        await self.api.close()
        await self.models.close()
        await self.application.close()
        await asyncio.to_thread(self.secrets.close)


async def compose() -> Composed:
    """Opens the GPU and the secrets, which takes up to a second or two."""
    settings, secrets = load_settings(), await open_secrets()
    around = surroundings()
    network, room = network_of(settings, secrets, around, lambda: load_settings().relay), room_settings(settings.room)
    memory = await asyncio.to_thread(open_memory, secrets)
    sharing = Sharing(settings.room_weights)
    application = await assemble(
        network,
        room,
        passes=secrets.passes(),
        memory=memory,
        weights_from_room=lambda: sharing.on,
        hub_token=lambda: secrets.get(HUB_TOKEN),
    )
    suggested = await pledge_of(settings, application.gpu)
    device = describe(application.gpu, suggested, application.shelf.table)
    api = ApiControl(application.room.answers, secrets)
    models = keeper_of(application, secrets)
    return Composed(application, secrets, device, NearbyWatch(around.nearby), sharing, api, models)


def keeper_of(application: Application, secrets: Secrets) -> ModelKeeper:
    return ModelKeeper(
        KeeperPorts(
            shelf=application.shelf,
            find=application.find_models,
            take=application.take_model,
            changed=application.room.models_changed,
            secrets=secrets,
        )
    )


def describe(gpu: GpuSummary | None, suggested_gb: float, table: Models) -> ThisDevice:
    starter = next((record for record in table.models if record.starter), None)
    size = starter.download_bytes if starter is not None else 0
    there = starter is not None and is_whole(starter)
    if gpu is None:
        return ThisDevice(
            ready=True,
            problem="No GPU that can compute was found.",
            remedy="Update the graphics driver and start Pooled again.",
            starter_bytes=size,
            starter_ready=there,
        )
    gb = float(max(1, math.floor(suggested_gb)))
    return ThisDevice(True, gpu.name, suggested_gb=gb, starter_bytes=size, starter_ready=there)
