"""What was measured before, in one file of the data folder: a table for each device, driver and kernels."""

from __future__ import annotations

import hashlib
import logging
from itertools import product
from pathlib import Path

import msgspec

from app.core.files import read_start, write_whole
from app.core.paths import data_dir
from app.engine.device import Gpu
from app.engine.gguf.types import TensorType
from app.engine.ops.fast_matvec.order import Order, is_possible
from app.engine.ops.fast_matvec.source import WHOLE, write_kernel
from app.engine.ops.render import has_extra
from app.engine.placement import Epilogue, Job, Placement, Placements

log = logging.getLogger(__name__)

MOST_TABLES = 8
"""Of several GPUs, drivers and versions; the oldest goes first."""
MOST_JOBS = 4096
LARGEST_FILE = 4 << 20


class Table(msgspec.Struct, forbid_unknown_fields=True):
    """Placements measured on one ``device``."""

    device: str
    placements: list[tuple[Job, Placement]]


class Tables(msgspec.Struct, forbid_unknown_fields=True):
    """The file."""

    tables: list[Table] = []


def placements_path() -> Path:
    return data_dir() / "placements.json"


def remembered(gpu: Gpu) -> Placements:
    """What is known of this GPU; nothing where the file is damaged or of another device."""
    own = device_key(gpu)
    table = next((table for table in _read().tables if table.device == own), Table(own, []))
    return {job: placement for job, placement in table.placements if is_possible(placement, job, gpu.caps)}


def remember(gpu: Gpu, placements: Placements) -> None:
    """Puts this GPU's placements in the place of those known before; a disk that refuses is only logged."""
    own = Table(device_key(gpu), list(placements.items())[:MOST_JOBS])
    others = [table for table in _read().tables if table.device != own.device]
    try:
        write_whole(placements_path(), msgspec.json.encode(Tables([*others, own][-MOST_TABLES:])))
    except OSError as error:
        log.warning("placements.json cannot be written: %s", error.strerror)


def device_key(gpu: Gpu) -> str:
    """Names what a measurement depends on: the GPU, its driver, and the kernels' own text."""
    info, caps = gpu.info, gpu.caps
    ways = (Placement(2, 2, 1), Placement(2, 2, 1, ahead=2), Placement(8, 4, 1, fused=True))
    kinds = [kind for kind in TensorType if has_extra(kind)]
    kernels = [write_kernel(k, Order(32), way, Epilogue.SWIGLU, caps, WHOLE) for k, way in product(kinds, ways)]
    facts = info.name, info.backend, info.driver, caps.subgroup, caps.shared, kernels
    return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def _read() -> Tables:
    try:
        return msgspec.json.decode(read_start(placements_path(), LARGEST_FILE), type=Tables)
    except FileNotFoundError:
        return Tables()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        log.info("placements.json cannot be read and is measured anew: %s", error)
        return Tables()
