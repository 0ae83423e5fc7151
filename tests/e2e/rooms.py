"""Whole devices in one process: real engine, real links on 127.0.0.1, small models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.engine.arch import Mixer, read_config
from app.engine.gguf import GgufFile
from app.models.store import path_of
from app.models.table import ModelFile, ModelRecord, ModelTable, Recurrent, record_from_header
from app.room.assembly import Application, Network, assemble
from app.room.ice import IceConfig
from app.room.settings import RoomSettings
from app.room.signal_servers import SignalServer
from app.room.state import RoomState


def table_with(path: Path, key: str = "tiny") -> ModelTable:
    """A table of one model, its file put where the program looks for it."""
    record = record_of(path, key)
    _put(record, path)
    return ModelTable((record,))


def record_of(path: Path, key: str = "tiny") -> ModelRecord:
    """What the table would say of a small model's file."""
    file = GgufFile.open(path)
    config = read_config(file)
    blocks = [_block_of(name, t.nbytes) for name, t in file.tensors.items() if name.startswith("blk.")]
    delta = config.delta
    return record_from_header(
        key=key, label="Tiny", family=config.architecture, layers=config.layers, hidden=config.hidden,
        file=ModelFile(path.name, path.stat().st_size, ""), heads=config.heads.heads,
        kv_heads=config.heads.kv_heads, head_dim=config.heads.size, vocab=config.vocab,
        trained_context=min(2048, config.context),
        trunk_bytes=sum(size for block, size in blocks if block < config.layers),
        draft_bytes=sum(size for block, size in blocks if block >= config.layers),
        embed_bytes=file.tensor("token_embd.weight").nbytes,
        output_bytes=0 if config.tied else file.tensor("output.weight").nbytes,
        attention_interval=max(1, config.layers // max(1, config.mixers.count(Mixer.ATTENTION))),
        recurrent=Recurrent(delta.value_heads, delta.size, delta.key_heads, delta.inner) if delta else None,
    )  # fmt: skip


def _block_of(name: str, size: int) -> tuple[int, int]:
    return int(name.split(".")[1]), size


def _put(record: ModelRecord, path: Path) -> None:
    target = path_of(record, record.files[0])
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        target.symlink_to(path.resolve())


async def device(server: SignalServer, table: ModelTable, settings: RoomSettings, stripes: int = 2) -> Application:
    network = Network((server.label,), IceConfig(stun=()), stripes, cloud=False)
    return await assemble(network, settings, table, fixed_host=True)


async def until(app: Application, true: Callable[[RoomState], bool], limit: float = 120.0) -> RoomState:
    """Waits for a state; the room's own words if it does not come."""
    began = time.monotonic()
    while not true(app.room.state):
        state = app.room.state
        if time.monotonic() - began > limit:
            pytest.fail(f"did not happen: {state.phase} {state.trouble} {state.notices}")
        await asyncio.sleep(0.01)
    return app.room.state
