"""A verb from the command line to the exit code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from app.cli.chat import chat
from app.cli.console import make_console
from app.cli.ending import FAILED, Ending, run_to_end
from app.cli.hosting import host, join
from app.cli.models import pull, remove, show_list
from app.cli.options import (
    ChatOptions,
    HostOptions,
    JoinOptions,
    ListOptions,
    Options,
    PullOptions,
    RemoveOptions,
    ServeOptions,
)
from app.cli.serving import serve
from app.core.errors import PooledError

_WORKS: dict[type[object], Callable[[Any, Ending], Coroutine[object, object, int]]] = {
    HostOptions: host,
    JoinOptions: join,
    ChatOptions: chat,
    ServeOptions: serve,
    PullOptions: pull,
    ListOptions: show_list,
    RemoveOptions: remove,
}


def run_verb(options: Options) -> int:
    """0 done, 1 failed. What went wrong is one line on standard error."""
    return run_to_end(partial(_run, options))


async def _run(options: Options, ending: Ending) -> int:
    try:
        return await _WORKS[type(options)](options, ending)
    except PooledError as error:
        said = f"{error.what} {error.remedy}".strip()
        make_console(stderr=True).print(said, markup=False, highlight=False, soft_wrap=True)
        return FAILED
