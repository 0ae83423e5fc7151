"""``pooled host`` and ``pooled join``: a device in a room, with its screen and what it does by itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from rich.console import Console

from app.cli.attendant import Attendant, AutoStart
from app.cli.console import make_console
from app.cli.device import Device, settings_for, whole_device
from app.cli.ending import DONE, Ending
from app.cli.json_log import JsonView
from app.cli.keyboard import Keyboard, standard_input
from app.cli.lending import Lent, lent, most_here
from app.cli.model_names import model_called
from app.cli.models import print_models
from app.cli.options import HostOptions, JoinOptions, Lending
from app.cli.panel_room import PanelRoom, can_show
from app.cli.printer import QUIET, Printer
from app.cli.rejoin import stay_for
from app.cli.screen import Screen, View
from app.cli.serve_view import ServeView
from app.cli.serving import api_beside, in_room
from app.cli.session import Entry, TerminalRoom, first_of
from app.cli.starter import fetch_starter
from app.cli.text import gb_text
from app.cli.waiting import ENDS, leave
from app.cli.way_back import way_back
from app.core.errors import PooledError
from app.room import intents as it
from app.room.planner import SplitMode
from app.room.room import Room
from app.serve.config import ServeConfig

SPLITS = {"speed": SplitMode.SPEED, "spread": SplitMode.MEMORY}


@dataclass(frozen=True)
class Terminal:
    """One device at one terminal."""

    options: Lending
    device: Device
    console: Console
    keyboard: Keyboard
    printer: Printer
    lent: Lent
    ending: Ending

    @property
    def room(self) -> Room:
        return self.device.application.room

    def view(self) -> View:
        return JsonView(make_console()) if self.options.json_log else Screen(self.printer)

    def serve_view(self, serving: ServeConfig) -> ServeView:
        if self.options.json_log:
            return ServeView(Printer(make_console(), interactive=False), serving.token, json_log=True)
        return ServeView(self.printer, serving.token)


async def host(options: HostOptions, ending: Ending) -> int:
    if options.model.lower() == "list":
        return await print_models()
    console = make_console(stderr=options.json_log)
    async with whole_device(options, settings_for(options), fixed_host=True) as device:
        terminal = await _terminal(options, device, console, ending)
        await _prepare(options, terminal)
        keyboard = None if options.yes else terminal.keyboard
        back = await way_back(terminal.room.state.offer, terminal.printer, keyboard, again=options.again)
        entry = back or it.OpenRoom(device.settings.name, terminal.lent.gb)
        with_panel = not options.chat and not options.json_log and can_show(console, terminal.keyboard)
        return await _stay(terminal, entry, _attendant(options, terminal.room), panel=with_panel)


def _attendant(options: HostOptions, room: Room) -> Attendant:
    start = AutoStart(options.model, options.wait, options.ctx)
    return Attendant(room, start if options.start else None, wish=start, deny_unknown=options.deny_unknown)


async def join(options: JoinOptions, ending: Ending) -> int:
    console = make_console(stderr=options.json_log)
    keyboard = Keyboard(standard_input())
    where = options.where or await _asked_where(Printer(console, interactive=True), keyboard)
    async with whole_device(options, settings_for(options), fixed_host=False) as device:
        terminal = await _terminal(options, device, console, ending, keyboard)
        entry = it.JoinRoom(where, device.settings.name, terminal.lent.gb)

        async def stay() -> int:
            return await _stay(terminal, entry, Attendant(terminal.room), panel=False)

        return await stay_for(terminal.room, stay, options.wait, terminal.printer)


async def _asked_where(printer: Printer, keyboard: Keyboard) -> str:
    printer.line("Which room? Its code, or paste its link.")
    printer.prompt()
    answer = await keyboard.line()
    printer.typed()
    if not answer or not answer.strip():
        raise PooledError("There is no room to join.", "Ask its owner for the code or the link.")
    return answer.strip()


async def _terminal(
    options: Lending, device: Device, console: Console, ending: Ending, keyboard: Keyboard | None = None
) -> Terminal:
    keyboard = keyboard or Keyboard(standard_input())
    printer = Printer(console, interactive=keyboard.interactive, quiet=options.quiet)
    given = await lent(options, device.settings, device.application.gpu)
    printer.line(_banner(device, given), QUIET)
    if isinstance(options, JoinOptions) and given.gb:
        printer.line("Join rooms of people you trust: who runs the model reads what is asked. Ctrl-C leaves.", QUIET)
    return Terminal(options, device, console, keyboard, printer, given, ending)


def _banner(device: Device, given: Lent) -> str:
    gpu, where = device.application.gpu, device.secrets.where().value
    if gpu is None or not given.gb:
        return f"{device.settings.name} only asks: {given.why}."
    return f"{device.settings.name} lends {gb_text(given.gb)} on {gpu.name}: {given.why}. Secrets are kept in {where}."


async def _prepare(options: HostOptions, terminal: Terminal) -> None:
    """What has to be there, or decided, before the room opens."""
    application, room = terminal.device.application, terminal.room
    if options.model:
        model_called(options.model, application.shelf.table)  # a wrong name is told before the room opens
    if options.fetch and application.gpu is not None:
        await fetch_starter(application.shelf, terminal.console)
    settings = room.state.settings
    if options.auto_allow:
        settings = replace(settings, ask_first=False)
    if options.split:
        settings = replace(settings, split=SPLITS[options.split])
    if settings != room.state.settings:
        room.handle(it.ChangeSettings(settings))


async def _stay(terminal: Terminal, entry: Entry, attendant: Attendant, *, panel: bool) -> int:
    unattended = attendant.attend()
    try:
        screens = _screens(terminal, entry, attendant, panel=panel)
        return await first_of({"screens": screens, "api": _api(terminal)}) or DONE
    finally:
        unattended()
        if terminal.ending.for_good:
            await leave(terminal.room)


async def _screens(terminal: Terminal, entry: Entry | None, attendant: Attendant, *, panel: bool) -> int:
    """The panel and the lines in turn, until one of them is the last."""
    can_panel = panel
    if panel and entry is not None:
        terminal.room.handle(entry)
        entry = None
    while True:
        if panel:
            most = await most_here(terminal.device.application.gpu)
            code = await PanelRoom(terminal.room, terminal.console, terminal.keyboard, most).run()
            _say_end(terminal)
        else:
            lines = TerminalRoom(terminal.room, terminal.printer, terminal.keyboard, attendant, terminal.view())
            code = await lines.run(entry)
        if code is not None:
            return code
        panel, entry = can_panel and not panel, None


def _say_end(terminal: Terminal) -> None:
    """The panel is gone when it ends, and with it what it said."""
    state = terminal.room.state
    if state.phase in ENDS:
        terminal.printer.line(f"{state.trouble} {state.remedy}".strip(), "bold")


async def _api(terminal: Terminal) -> int:
    """Never ends by itself."""
    never, serving = asyncio.Event(), terminal.options.serve
    if serving is None:
        await never.wait()
        return DONE
    await in_room(terminal.room)
    async with api_beside(terminal.room, serving, terminal.serve_view(serving)):
        await never.wait()
    return DONE
