"""What chips, cards and lists say about a device."""

from __future__ import annotations

from app.room.kinds import Kind
from app.room.planner import LeftOut
from app.room.state import Device, DeviceStatus
from app.ui import words

PHONES = frozenset({Kind.IPHONE, Kind.IPAD, Kind.ANDROID, Kind.TABLET})
LEFT_OUT = {
    LeftOut.UNNEEDED: "would make it slower",
    LeftOut.SMALL: "lends too little to hold one layer",
    LeftOut.LATE: "came after the start; deal again to include it",
}
STATUS = {
    DeviceStatus.CONNECTED: "Connected",
    DeviceStatus.LOADING: "Loading",
    DeviceStatus.READY: "Ready",
    DeviceStatus.CHAT_ONLY: "Asks only",
    DeviceStatus.SILENT: "Not responding",
    DeviceStatus.AWAY: "Gone",
    DeviceStatus.PAUSED: "Paused",
}


def kind_word(device: Device) -> str:
    if device.kind is Kind.API:
        return f"API client · {device.client}" if device.client else "API client"
    return "phone" if device.kind in PHONES else device.kind.value


def chip_note(device: Device) -> str:
    """The small words behind the name on a chip."""
    if device.status is DeviceStatus.LOADING:
        return words.percent(device.progress or 0.0)
    if device.silent or device.away or device.paused:
        return STATUS[device.status].lower()
    kind = "program" if device.kind is Kind.API else kind_word(device)
    note = words.gb(device.gb) if device.holds_layers else kind
    return f"{note} · you" if device.me else note


def status_line(device: Device) -> str:
    status = STATUS[device.status]
    return f"{status}, {words.percent(device.progress or 0.0)}" if device.status is DeviceStatus.LOADING else status


def hardware(device: Device) -> str:
    """ "otter · RTX 4090"."""
    if device.paused:
        return f"{device.name} · paused"
    if device.gpu and device.holds_layers:
        return f"{device.name} · {device.gpu}"
    return f"{device.name} · {kind_word(device)}, asks only" if not device.holds_layers else device.name


def idle(device: Device) -> str:
    """Why it holds no layers: "wren would make it slower."; "" where there is no reason to tell."""
    if device.paused:
        return f"{device.name} is paused: {'you need' if device.me else 'its owner needs'} the GPU."
    if not device.holds_layers:
        return f"{device.name} ({kind_word(device)}) only asks."
    return f"{device.name} {LEFT_OUT[device.out]}." if device.out is not None else ""


def path_words(device: Device) -> str:
    match device.path:
        case "direct":
            return "direct"
        case "relay":
            return "through a relay"
        case _:
            return ""
