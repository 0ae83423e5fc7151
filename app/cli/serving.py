"""The API beside a room: started once the room is there, told of the model, stopped with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from app.cli.console import make_console
from app.cli.device import asking_room, settings_for
from app.cli.ending import Ending
from app.cli.entering import enter
from app.cli.options import ServeOptions
from app.cli.printer import Printer
from app.cli.serve_view import ServeView
from app.cli.session import over
from app.cli.waiting import until
from app.room.room import Room
from app.serve.config import ServeConfig
from app.serve.server import ApiServer

TOLD_WITHIN_S = 2.0


async def serve(options: ServeOptions, _ending: Ending) -> int:
    """Until the room ends, or Ctrl-C."""
    settings = settings_for(options)
    aside = Printer(make_console(stderr=True), interactive=False)
    async with asking_room(settings, "pooled serve") as room:
        await enter(room, options.where, settings.name, aside)
        async with api_beside(room, options.serving, _view(options)):
            code = await over(room)
        aside.line(f"{room.state.trouble} {room.state.remedy}".strip())
        return code


def _view(options: ServeOptions) -> ServeView:
    printer = Printer(make_console(), interactive=False, quiet=options.quiet)
    return ServeView(printer, options.serving.token, json_log=options.json_log)


@asynccontextmanager
async def api_beside(room: Room, serving: ServeConfig, view: ServeView) -> AsyncGenerator[int]:
    """The port it listens on. PooledError when it is taken."""
    server = ApiServer(room.answers, serving, on_change=view.changed)
    async with AsyncExitStack() as stack:
        await server.start()
        stack.push_async_callback(server.stop)
        view.listening(room.answers.room, server.port)
        await _model_told(room)
        view.model(room.answers.model, server.port)
        stack.callback(room.subscribe(lambda _state: view.model(room.answers.model, server.port)))
        yield server.port


async def _model_told(room: Room) -> None:
    """Who has just come in hears a moment later what runs there."""
    with suppress(TimeoutError):
        async with asyncio.timeout(TOLD_WITHIN_S):
            await until(room, lambda _state: room.answers.model is not None)


async def in_room(room: Room) -> None:
    """Once there is a room to offer."""
    await until(room, lambda state: state.phase.in_room)
