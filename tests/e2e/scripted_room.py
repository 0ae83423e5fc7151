"""A room that runs a script in the nano model's words, in this process; programs join it from others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.engine.gguf import GgufFile
from app.engine.sampling import choose
from app.engine.tokenizer import GgufTokenizer
from app.models.table import Contexts, ModelRecord, ModelTable
from app.prompt.language import Language, language
from app.room import intents as it
from app.room.ice import IceConfig
from app.room.meta import OURS, Meta
from app.room.outside import RoomPorts, room_transport
from app.room.room import Room
from app.room.settings import RoomSettings
from app.room.signal_servers import SignalServer
from app.room.state import Phase
from app.room.transport import Transport, TransportConfig
from tests.e2e.rooms import record_of
from tests.e2e.scripted import Script, ScriptedCompute
from tests.room.loopback import until

CONTEXT = 131_072
ABLE = Meta(ua="Device", webgpu=True, dspec=1, max_bind_mb=4096, native=OURS, full=True)


@dataclass(frozen=True)
class ScriptedRoom:
    """``link`` lets programs in."""

    room: Room
    compute: ScriptedCompute
    link: str


@asynccontextmanager
async def scripted_room(model: Path, server: SignalServer, script: Script) -> AsyncIterator[ScriptedRoom]:
    """``model`` gives the words and the template; the script gives the answers."""
    compute = ScriptedCompute(script, _language(model))
    record = _record(model)

    async def open_language(_record: ModelRecord) -> Language:
        return compute.language

    ports = RoomPorts(
        new_transport=lambda _signal, identity: room_transport(
            Transport(TransportConfig((server,), IceConfig(stun=()), 1, identity=identity))
        ),
        compute=compute,
        table=ModelTable((record,)),
        open_language=open_language,
        choose=choose,
        meta=ABLE,
        on_disk=lambda: (record.key,),
    )
    room = Room(ports, RoomSettings(ask_first=False))
    room.start()
    try:
        yield await _started(room, compute)
    finally:
        await room.close()


async def _started(room: Room, compute: ScriptedCompute) -> ScriptedRoom:
    room.handle(it.OpenRoom("otter", 64))
    await until(lambda: room.state.invite is not None and bool(room.state.rows))
    room.handle(it.Start())
    await until(lambda: room.state.phase is Phase.ONLINE)
    assert room.state.invite is not None
    return ScriptedRoom(room, compute, room.state.invite.link)


def _language(model: Path) -> Language:
    tokenizer = GgufTokenizer(GgufFile.open(model).metadata)
    return language(tokenizer, tokenizer.template, tokenizer.bos_text, tokenizer.eos_text)


def _record(model: Path) -> ModelRecord:
    """As long a context as tools expect; a dense model goes on from any position."""
    record = record_of(model, "scripted")
    return msgspec.structs.replace(
        record, label="Scripted", kind="dense", trained_context=CONTEXT, contexts=Contexts(CONTEXT, CONTEXT),
        recurrent=None, draft_bytes=0, attention_interval=1,
    )  # fmt: skip
