"""The whole room as one screen, redrawn in place (spec: product §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from app.cli.printer import ACCENT, QUIET
from app.cli.text import digits_text, download_text, gb_text, layers_text, safe
from app.room.codes import format_code
from app.room.state import Device, DeviceStatus, ModelRow, Phase, RoomState

CODE = "code"
NARROW = 64
"""Columns below which the GPU is left out."""
BAR = 20

_PHASES = {
    Phase.CONNECTING: "connecting",
    Phase.ROOM: "waiting for devices",
    Phase.STARTING: "loading",
    Phase.ANSWERING: "answering",
    Phase.HELD: "holding an answer",
    Phase.REDEALING: "dealing the layers again",
    Phase.DEGRADED: "a device is missing",
}


@dataclass(frozen=True)
class Look:
    """What the terminal can do. ``seconds``: how long the room is open."""

    width: int = 80
    seconds: float = 0.0
    plain: bool = False
    """Only ASCII."""
    note: str = ""
    """What the last key did, or why it did nothing."""


def panel(state: RoomState, look: Look) -> RenderableType:
    """Everything but a question that is asked in it."""
    parts: list[RenderableType] = [_header(state, look), _devices(state, look), *_lobby(state)]
    parts += [_memory(state, look), *_trouble(state, look), _rule(look), _keys(state)]
    return Group(*parts)


def status_text(state: RoomState, seconds: float) -> str:
    """One line: where the room is, how many are in it, for how long, how fast."""
    if state.phase is Phase.ONLINE:
        phase = f"{safe(state.label)} is online"
    else:
        phase = _PHASES.get(state.phase, safe(state.status_line) or "opening")
    count = len(state.people)
    parts = [phase, f"{count} device{'' if count == 1 else 's'}", f"{int(seconds) // 60}:{int(seconds) % 60:02}"]
    if state.speed.tokens_per_second:
        parts.append(f"{state.speed.tokens_per_second:.1f} tok/s")
    return " · ".join(parts)


def _header(state: RoomState, look: Look) -> RenderableType:
    link = safe(state.invite.link) if state.invite else ""
    lines = [
        Text.assemble(("Pooled  ", "bold"), (f" {format_code(state.code) or '…'} ", CODE)),
        Text(link, f"link {link}" if link else "", overflow="fold"),
        Text(status_text(state, look.seconds), QUIET),
    ]
    return Group(*lines)


def _devices(state: RoomState, look: Look) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET, expand=False)
    wide = look.width >= NARROW
    for name in ("DEVICE", *(("GPU",) if wide else ()), "LENDS", "LAYERS" if state.phase.has_model else "HOLDS", ""):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for device in state.devices:
        table.add_row(*_row(device, wide=wide))
    return table


def _row(device: Device, *, wide: bool) -> list[str]:
    me = " (you)" if device.me else ""
    gpu = [safe(device.gpu) or device.kind.value] if wide else []
    lends = gb_text(device.gb) if device.holds_layers else "only asks"
    return [safe(device.name) + me, *gpu, lends, layers_text(device) if device.layers else "", _doing(device)]


def _doing(device: Device) -> str:
    if device.status is DeviceStatus.LOADING and device.progress is not None:
        return f"loading {device.progress:.0%}"
    if device.layers and device.ms is not None:
        wire = f" + {device.wire_ms:.1f} on the way" if device.wire_ms else ""
        return f"{device.ms:.1f} ms a word{wire}"
    usual = device.status in (DeviceStatus.CONNECTED, DeviceStatus.CHAT_ONLY, DeviceStatus.READY)
    return "" if usual else device.status.value


def _lobby(state: RoomState) -> list[Text]:
    """Who waits at the door, the first of whom ``a`` and ``d`` are about."""
    lines: list[Text] = []
    for i, request in enumerate(state.waiting):
        digits = f", must show {digits_text(request.digits)}" if request.digits else ""
        lent = "only asks" if request.chat_only else f"lends {gb_text(request.gb)}"
        keys = "  a allow, d deny" if i == 0 else ""
        lines.append(Text(f"? {safe(request.name)} wants to join ({lent}{digits}){keys}", ACCENT))
    return lines


def chosen_row(state: RoomState) -> ModelRow | None:
    return next((row for row in state.rows if row.key == state.chosen), None)


def _memory(state: RoomState, look: Look) -> Text:
    row = chosen_row(state)
    if row is None or state.phase.has_model:
        return Text(f"{gb_text(state.pooled_gb)} pooled", QUIET)
    share = min(1.0, row.have_gb / row.need_gb) if row.need_gb else 1.0
    full, empty = ("#", ".") if look.plain else ("━", "─")
    bar = full * round(share * BAR) + empty * (BAR - round(share * BAR))
    fetched = "" if row.on_disk else f", {download_text(row.download_bytes)}"
    line = Text(f"{safe(row.label)}: {gb_text(row.have_gb)} of {gb_text(row.need_gb)}  ")
    return line.append(bar, ACCENT).append(f"\n{safe(row.sentence)}{fetched}", QUIET)


def _trouble(state: RoomState, look: Look) -> list[Text]:
    said = [
        safe(f"{state.trouble} {state.remedy}".strip()),
        *(safe(notice.text) for notice in state.notices),
        look.note,
    ]
    return [Text(line, "bold") for line in said if line]


def _rule(look: Look) -> Rule:
    return Rule(style=QUIET, characters="-" if look.plain else "─")


def _keys(state: RoomState) -> Text:
    if not state.phase.in_room:
        keys = "q quit"
    elif state.phase.has_model:
        keys = "c chat  r deal again  i copy link  q quit"
    elif state.phase is Phase.STARTING:
        keys = "c chat  i copy link  q quit"
    else:
        keys = "Enter start  m model  l lend  s split  i copy link  c chat  q quit"
    return Text(keys, QUIET)
