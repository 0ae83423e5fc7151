"""A whole device put together: engine, shelf, network and room, for the window and the terminal alike."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from app.core.clock import Clock, SystemClock
from app.core.errors import GpuError
from app.core.paths import data_dir
from app.engine.checkpoints import CheckpointStore
from app.engine.gguf import GgufFile
from app.engine.sampling import choose
from app.engine.tokenizer import GgufTokenizer
from app.models.client import Token, no_token
from app.models.rows import full_table, refresh, take_file
from app.models.shelf import Shelf
from app.models.table import LiveTable, ModelRecord, ModelTable, builtin_table
from app.models.transfer import Tell
from app.prompt.language import Language, language
from app.room.compute import EngineCompute, GpuSummary
from app.room.copies import DiskCopies
from app.room.generate import Choose
from app.room.ice import IceConfig
from app.room.invite import Invite
from app.room.late_transport import LateTransport, ServedTransport, Surroundings
from app.room.meta import OURS, Meta
from app.room.outside import Passes, PassesInMemory, RoomPorts, RoomTransport, app_link, room_transport
from app.room.relays import Lender
from app.room.room import Room
from app.room.saved_room import NoMemory, RoomMemory
from app.room.settings import RoomSettings
from app.room.signal_servers import SignalServer, server_list
from app.room.transport import STRIPES, Transport, TransportConfig

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Paths:
    """How connections find their way: with relays of one's own, and those of a lender."""

    ice: IceConfig
    lender: Lender | None = None


@dataclass(frozen=True)
class Network:
    """How this device reaches others. ``own`` gives the application's own room server once it listens.

    With ``around`` the listener runs while a room is open here, and gives ``own`` and ``link_of``.
    """

    signal: tuple[str, ...] = ()
    ice: IceConfig = field(default_factory=IceConfig)
    stripes: int = STRIPES
    cloud: bool = True
    own: Callable[[], SignalServer | None] = lambda: None
    link_of: Callable[[Invite], str] = app_link
    around: Surroundings | None = None
    paths: Callable[[], Paths] | None = None
    """Asked in the place of ``ice`` each time a room is entered."""


@dataclass
class Application:
    """A device ready to open or join rooms. ``gpu`` is None where it can only ask."""

    room: Room
    compute: EngineCompute
    shelf: Shelf
    gpu: GpuSummary | None
    disk: DiskCopies
    memory: RoomMemory
    models: LiveTable
    """All that this device knows; own files and those of other programs come to it."""

    async def find_models(self) -> None:
        """Looks for models that came or went outside of this program."""
        self.models.table = await asyncio.to_thread(refresh, builtin_table())
        self.room.models_changed()

    async def take_model(self, path: Path, tell: Tell) -> ModelRecord:
        """A person's own file becomes a row, at once also in a room. FileError or ModelError say why not."""
        record = await take_file(path, tell, builtin_table())
        self.models.table = await asyncio.to_thread(full_table, builtin_table())
        self.room.models_changed()
        return record

    async def close(self) -> None:
        """Leaves the room, frees the GPU and ends every thread and task."""
        await self.room.close()
        await self.compute.close()
        await self.disk.close()
        await asyncio.to_thread(self.memory.close)


async def assemble(
    network: Network | None = None,
    settings: RoomSettings | None = None,
    table: ModelTable | None = None,
    passes: Passes | None = None,
    *,
    memory: RoomMemory | None = None,
    fixed_host: bool = False,
    weights_from_room: Callable[[], bool] = lambda: True,
    clock: Clock | None = None,
    choose: Choose = choose,
    hub_token: Token = no_token,
) -> Application:
    """Opens and measures the GPU, which takes up to a second, and builds a room around it.

    ``fixed_host``: rooms opened here run their model here, whoever lends more. ``weights_from_room``: whether this
    device now takes weights from others of its room, and gives them. ``clock`` is the room's and its connections';
    ``choose`` picks every token. ``hub_token`` is asked at each download.
    """
    network, clock = network or Network(), clock or SystemClock()
    models = LiveTable(table or await asyncio.to_thread(full_table))
    shelf = Shelf(models, hub_token)
    compute = EngineCompute(shelf)
    gpu = await _gpu_of(compute)
    disk = DiskCopies(CheckpointStore(data_dir() / "checkpoints"))
    ports = RoomPorts(
        new_transport=lambda linked, identity: new_transport(network, linked, identity, clock),
        compute=compute if gpu else None,
        table=models,
        open_language=lambda record: open_language(shelf, record),
        choose=choose,
        clock=clock,
        meta=replace(own_meta(gpu), fixed_host=fixed_host),
        on_disk=shelf.on_disk,
        passes=passes or PassesInMemory(),
        link_of=network.link_of,
        copies=disk.of,
        memory=memory or NoMemory(),
        weights_from_room=weights_from_room,
    )
    room = Room(ports, settings)
    room.start()
    return Application(room, compute, shelf, gpu, disk, ports.memory, models)


async def open_language(shelf: Shelf, record: ModelRecord) -> Language:
    """A model's tokenizer and chat format, from its own file."""
    path = await shelf.provide_header(record.key)
    return await asyncio.to_thread(lambda: _read_language(GgufFile.open(path)))


def own_meta(gpu: GpuSummary | None) -> Meta:
    """What this device says of itself (spec: rooms §7.2)."""
    kind = "Mac" if platform.system() == "Darwin" else "Device"
    if gpu is None:
        return Meta(ua=kind, native=OURS, webgpu=False)
    return Meta(
        ua=kind,
        native=OURS,
        webgpu=True,
        gpu=gpu.name[:80],
        max_buf_gb=round(gpu.buffer / 2**30, 1),
        max_bind_mb=gpu.binding >> 20,
        gbps=gpu.gbps,
        dspec=1,
        full=True,
    )


def _read_language(file: GgufFile) -> Language:
    tokenizer = GgufTokenizer(file.metadata)
    return language(tokenizer, tokenizer.template, tokenizer.bos_text, tokenizer.eos_text)


def new_transport(network: Network, linked: str, identity: str, clock: Clock) -> RoomTransport:
    """A device's connections; ``linked`` and ``identity`` as ``RoomPorts.new_transport`` is given them."""
    if network.around is None:
        return room_transport(_transport_to(network, linked, identity, (), clock))

    # As sound as ``room_transport``, for the same reason.
    def make(near: tuple[SignalServer, ...]) -> ServedTransport:
        return cast(ServedTransport, _transport_to(network, linked, identity, near, clock))

    return LateTransport(make, network.around, linked=bool(linked))


def _transport_to(
    network: Network, linked: str, identity: str, near: tuple[SignalServer, ...], clock: Clock
) -> Transport:
    servers = dict.fromkeys([*near, *server_list(linked, network.signal, network.own(), network.cloud)])
    paths = network.paths() if network.paths is not None else Paths(network.ice)
    return Transport(
        TransportConfig(tuple(servers), paths.ice, network.stripes, lender=paths.lender, identity=identity), clock
    )


async def _gpu_of(compute: EngineCompute) -> GpuSummary | None:
    try:
        return await compute.summary()
    except GpuError as error:
        log.warning("this device can only ask: %s", error)
        return None
