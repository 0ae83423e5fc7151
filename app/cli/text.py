"""Words from elsewhere made safe for a terminal, and the words a terminal room uses for its values."""

from __future__ import annotations

import unicodedata

from app.room.names import TURNING
from app.room.state import Device, DeviceStatus, ModelRow, RoomState, WaitingRequest

HIDDEN = frozenset({"Cc", "Cs"})
"""Controls, and halves of characters, which no output can encode."""


def safe(text: str) -> str:
    """Without control characters: a room's text must not move the cursor or name the window."""
    return "".join(c for c in text if c in "\n\t" or (unicodedata.category(c) not in HIDDEN and c not in TURNING))


def gb_text(gb: float) -> str:
    return f"{gb:g} GB" if gb >= 10 or gb == int(gb) else f"{gb:.1f} GB"


def download_text(size: int) -> str:
    """``size`` in bytes."""
    return f"download {size / 1e9:.1f} GB"


def digits_text(digits: str) -> str:
    """Six digits as two groups."""
    return f"{digits[:3]} {digits[3:]}" if len(digits) == 6 else digits


def layers_text(device: Device) -> str:
    return f"layers {device.layers[0]}–{device.layers[1]}" if device.layers else "no layers"


def device_text(device: Device) -> str:
    """One device in one line."""
    roles = [word for word, is_so in (("you", device.me), ("owner", device.creator)) if is_so]
    lent = gb_text(device.gb) if device.holds_layers else "only asks"
    parts = [device.kind.value, lent, safe(device.gpu), layers_text(device) if device.layers else ""]
    name = f"{safe(device.name)} ({', '.join(roles)})" if roles else safe(device.name)
    status = "" if device.status in (DeviceStatus.CONNECTED, DeviceStatus.CHAT_ONLY) else device.status.value
    return " · ".join(part for part in (name, *parts, status) if part)


def waiting_text(request: WaitingRequest) -> str:
    """The question at the door."""
    lent = "only asks" if request.chat_only else f"lends {gb_text(request.gb)}"
    digits = f" It must show {digits_text(request.digits)}." if request.digits else ""
    return f"{safe(request.name)} wants to join ({request.kind.value}, {lent}).{digits} [a]llow / [d]eny"


def row_text(row: ModelRow, state: RoomState) -> str:
    """One line of the model list."""
    mark = "*" if row.key == state.chosen else " "
    fetched = "on disk" if row.on_disk else download_text(row.download_bytes)
    speed = f" · {safe(row.speed)}" if row.speed else ""
    return f"{mark} {row.label:<24} needs {gb_text(row.need_gb):<8} {row.sentence} · {fetched}{speed}"


def split_text(state: RoomState) -> str:
    """Who holds what of the running model."""
    return ", ".join(f"{safe(device.name)} {layers_text(device)}" for device in state.devices if device.layers)
