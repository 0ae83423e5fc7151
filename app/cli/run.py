"""A verb from the command line to the exit code: settings, secrets, engine and room put together and taken apart."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import msgspec
from rich.console import Console

from app.cli.keyboard import Keyboard, standard_input
from app.cli.options import HostOptions, JoinOptions, Options
from app.cli.printer import Printer
from app.cli.session import DONE, FAILED, AutoStart, TerminalRoom, leave
from app.cli.starter import fetch_starter
from app.cli.text import gb_text
from app.cli.way_back import way_back
from app.core.errors import PooledError
from app.core.secrets import Secrets, open_secrets
from app.core.settings import Settings, load_settings, save_settings, settings_path
from app.room import intents as it
from app.room.assembly import Application, assemble
from app.room.disk_memory import open_memory
from app.room.preferences import network_of, pledge_of, room_settings

INTERRUPTED = 130
QUIET = "dim"
LEAVING, STOPPING = ("SIGINT",), ("SIGTERM", "SIGHUP")
"""Ctrl-C is a person who leaves; the others end the program, and its room can be gone back to for a while."""


@dataclass
class _Ending:
    """Whether the room is left for good when the program ends."""

    for_good: bool = True


def run_verb(options: Options) -> int:
    """0 done, 1 failed. The first Ctrl-C leaves the room properly, a second one ends at once."""
    try:
        return asyncio.run(_leaving_on_signals(options))
    except KeyboardInterrupt:
        return INTERRUPTED


async def _leaving_on_signals(options: Options) -> int:
    loop, task, ending = asyncio.get_running_loop(), asyncio.current_task(), _Ending()
    assert task is not None, "a coroutine runs in a task"
    signals = {getattr(signal, name): name in LEAVING for name in (*LEAVING, *STOPPING) if hasattr(signal, name)}

    def end(for_good: bool) -> None:
        for each in signals:
            loop.remove_signal_handler(each)
        ending.for_good = for_good
        task.cancel()

    # Without handlers of its own (Windows) asyncio cancels this task just the same.
    with contextlib.suppress(NotImplementedError):
        for each, for_good in signals.items():
            loop.add_signal_handler(each, end, for_good)
    try:
        return await _run(options, ending)
    except asyncio.CancelledError:
        return DONE


async def _run(options: Options, ending: _Ending) -> int:
    console = Console()
    try:
        settings = _settings(options)
        async with _device(settings, fixed_host=isinstance(options, HostOptions)) as device:
            return await _in_room(options, device, console, ending)
    except PooledError as error:
        console.print(f"{error.what} {error.remedy}".strip(), markup=False, highlight=False)
        return FAILED


def _settings(options: Options) -> Settings:
    """The saved settings, their name kept from the first time on, and what the flags say over them."""
    saved = load_settings()
    if not settings_path().exists():
        save_settings(saved)
    changed = {"name": options.name, "signal": options.signal, "pledge_gb": options.gb}
    return msgspec.structs.replace(saved, **{name: value for name, value in changed.items() if value})


@dataclass(frozen=True)
class _Device:
    settings: Settings
    secrets: Secrets
    application: Application


@asynccontextmanager
async def _device(settings: Settings, *, fixed_host: bool) -> AsyncGenerator[_Device]:
    secrets = await open_secrets()
    try:
        network, room = network_of(settings, secrets), room_settings(settings.room)
        memory = await asyncio.to_thread(open_memory, secrets)
        application = await assemble(
            network,
            room,
            passes=secrets.passes(),
            memory=memory,
            fixed_host=fixed_host,
            weights_from_room=lambda: settings.room_weights,
        )
        try:
            yield _Device(settings, secrets, application)
        finally:
            await application.close()
    finally:
        await asyncio.to_thread(secrets.close)


async def _in_room(options: Options, device: _Device, console: Console, ending: _Ending) -> int:
    application, keyboard = device.application, Keyboard(standard_input())
    gb = 0.0 if options.gb == 0 else await pledge_of(device.settings, application.gpu)
    printer = Printer(console, interactive=keyboard.interactive)
    printer.line(_banner(device, gb), QUIET)
    auto_start, entry = None, _entry(options, device.settings.name, gb)
    if isinstance(options, HostOptions):
        auto_start = AutoStart(options.model, options.wait) if options.start else None
        await _prepare(options, application, console)
        entry = await way_back(application.room.state.offer, printer, keyboard, again=options.again) or entry
    try:
        return await TerminalRoom(application.room, printer, keyboard, auto_start).run(entry)
    finally:
        if ending.for_good:
            await leave(application.room)


async def _prepare(options: HostOptions, application: Application, console: Console) -> None:
    if options.fetch and application.gpu is not None:
        await fetch_starter(application.shelf, console)
    if options.auto_allow:
        application.room.handle(it.ChangeSettings(replace(application.room.state.settings, ask_first=False)))


def _entry(options: Options, name: str, gb: float) -> it.OpenRoom | it.JoinRoom:
    if isinstance(options, JoinOptions):
        return it.JoinRoom(options.where, name, gb)
    return it.OpenRoom(name, gb)


def _banner(device: _Device, gb: float) -> str:
    gpu = device.application.gpu
    if gpu is None:
        return f"{device.settings.name}: no graphics processor can be used here, this device only asks."
    where = device.secrets.where().value
    lent = f"lends {gb_text(gb)} on {gpu.name}" if gb else f"only asks (memory of {gpu.name} is too short to lend)"
    return f"{device.settings.name} {lent}. Keys and passes are kept in {where}."
