"""Draws a room on a terminal as lines: what is different between two states is what is said."""

from __future__ import annotations

from typing import Protocol

from app.cli.commands import HELP, Show
from app.cli.printer import ACCENT, QUIET, Printer
from app.cli.qr import qr_text
from app.cli.stream import AnswerStream
from app.cli.text import device_text, digits_text, gb_text, row_text, safe, split_text, waiting_text
from app.room.codes import format_code
from app.room.state import Device, DeviceStatus, Invite, NoticeKind, Phase, RoomState

BAD = "bold"
PROGRESS_STEP = 0.25
TOLD_STATUS = frozenset({DeviceStatus.SILENT, DeviceStatus.AWAY})


class View(Protocol):
    """Something that shows a room."""

    def draw(self, state: RoomState) -> None: ...

    def show(self, what: Show) -> None: ...


class Screen:
    """``draw`` gets every new state in order."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._before = RoomState()
        self._answers = AnswerStream(printer)

    def draw(self, state: RoomState) -> None:
        before, self._before = self._before, state
        self._phase(before, state)
        if state.invite is not None and before.invite is None:
            self._invite(state.invite, asks=state.settings.ask_first)
        self._door(before, state)
        self._devices(before, state)
        self._notices(before, state)
        if state.heir_wanted and not before.heir_wanted:
            self._printer.line("The owner would leave this room to you. /own takes it, /decline does not.", ACCENT)
        self._answers.draw(state)
        if state.my_position and state.my_position != before.my_position:
            self._printer.line(f"Your question waits, number {state.my_position} in the queue.", QUIET)
        if state.phase.in_room and state.live is None:
            self._printer.prompt()

    def show(self, what: Show) -> None:
        state, line = self._before, self._printer.line
        match what:
            case Show.DEVICES:
                for device in state.devices:
                    line(device_text(device))
                line(f"{gb_text(state.pooled_gb)} pooled", QUIET)
            case Show.MODELS:
                for row in state.rows:
                    line(row_text(row, state))
            case Show.INVITE if state.invite is not None:
                self._invite(state.invite, asks=state.settings.ask_first)
            case Show.INVITE:
                line("There is no room yet.")
            case Show.HELP:
                for command, meaning in HELP.items():
                    line(f"{command:<20} {meaning}")

    def _phase(self, before: RoomState, state: RoomState) -> None:
        if state.phase is Phase.CONNECTING and state.status_line != before.status_line:
            self._printer.line(f"{safe(state.status_line)}…", QUIET)
        if state.digits and state.digits != before.digits:
            self._printer.line("Waiting for the room's owner to let this device in.")
            self._printer.line(f"Their screen must show {digits_text(state.digits)}", ACCENT)
        if state.phase is not before.phase:
            self._phase_began(state)

    def _phase_began(self, state: RoomState) -> None:
        text, style = _phase_line(state)
        if text:
            self._printer.line(text, style)

    def _invite(self, invite: Invite, *, asks: bool) -> None:
        line, console = self._printer.line, self._printer.console
        line(f"Room {format_code(invite.code)}", ACCENT)
        if not invite.link:
            return
        picture = qr_text(invite.link)
        if console.encoding.lower().startswith("utf") and picture.index("\n") <= console.width:
            line(picture, "white on black" if console.color_system else "")
        line(invite.link)
        if invite.has_key:
            alone = "with the code alone they wait until you allow them" if asks else "so is whoever has the code"
            line(f"Whoever has the link is let in; {alone}.", QUIET)

    def _door(self, before: RoomState, state: RoomState) -> None:
        known = {request.id for request in before.waiting}
        for request in state.waiting:
            if request.id not in known:
                self._printer.line(waiting_text(request), ACCENT)

    def _devices(self, before: RoomState, state: RoomState) -> None:
        known = {device.id: device for device in before.devices}
        for device in state.devices:
            if device.id not in known:
                self._printer.line(f"+ {device_text(device)}")
            else:
                self._device_changed(known[device.id], device)

    def _device_changed(self, before: Device, device: Device) -> None:
        if device.status is not before.status and (TOLD_STATUS & {device.status, before.status}):
            self._printer.line(f"{safe(device.name)}: {device.status.value}")
        if device.progress is not None and _step(device.progress) > _step(before.progress or 0.0):
            self._printer.line(f"{safe(device.name)}: {device.progress:.0%} loaded", QUIET)

    def _notices(self, before: RoomState, state: RoomState) -> None:
        known = {notice.id for notice in before.notices}
        # Who joined has a line of its own that says more.
        told = {f"{device.name} joined." for device in state.devices}
        for notice in state.notices:
            if notice.id not in known and notice.text not in told:
                text = safe(f"{notice.text} {notice.remedy}".strip())
                self._printer.line(text, BAD if notice.kind is NoticeKind.BAD else QUIET)


def _step(progress: float) -> int:
    return int(progress / PROGRESS_STEP)


def _phase_line(state: RoomState) -> tuple[str, str]:
    """What to say when this phase begins, and in which style; "" for nothing."""
    trouble = safe(f"{state.trouble} {state.remedy}".strip())
    match state.phase:
        case Phase.STARTING:
            return f"Starting {state.label}…", QUIET
        case Phase.REDEALING:
            return "Dealing the layers again; the conversation is kept.", QUIET
        case Phase.ONLINE if state.live is None and not state.transcript:
            return f"{state.label} is online: {split_text(state)}. Ask something.", ACCENT
        case Phase.HELD:
            return f"Waiting for {safe(state.held_by)}. /stop gives the answer up.", BAD
        case Phase.RECONNECTING:
            return "The room's owner cannot be reached; trying again.", BAD
        case Phase.DEGRADED | Phase.OVER | Phase.ERROR:
            return trouble, BAD
        case _:
            return "", ""
