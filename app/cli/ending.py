"""How a verb that runs ends: by itself, by Ctrl-C, or stopped from outside (spec: product T-001)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

DONE, FAILED, INTERRUPTED = 0, 1, 130
LEAVING, STOPPING = "SIGINT", ("SIGTERM", "SIGHUP")
"""Ctrl-C is a person who leaves; the others end the program, and its room can be gone back to for a while."""


def _nothing_to_stop() -> bool:
    return False


@dataclass
class Ending:
    """``for_good``: the room is left, not only the program ended.

    ``stops`` is asked first at Ctrl-C; True: it stopped something smaller, and the program goes on.
    """

    for_good: bool = True
    stops: Callable[[], bool] = _nothing_to_stop


Work = Callable[[Ending], Coroutine[object, object, int]]


def run_to_end(work: Work) -> int:
    """The exit code. The first Ctrl-C leaves properly, a second one ends at once."""
    try:
        return asyncio.run(_with_signals(work))
    except KeyboardInterrupt:
        return INTERRUPTED


async def _with_signals(work: Work) -> int:
    loop, task, ending = asyncio.get_running_loop(), asyncio.current_task(), Ending()
    assert task is not None, "a coroutine runs in a task"
    names = [name for name in (LEAVING, *STOPPING) if hasattr(signal, name)]

    def end(for_good: bool) -> None:
        if for_good and ending.stops():
            return
        for name in names:
            loop.remove_signal_handler(getattr(signal, name))
        ending.for_good = for_good
        task.cancel()

    # Without handlers of its own (Windows) asyncio cancels this task just the same.
    with contextlib.suppress(NotImplementedError):
        for name in names:
            loop.add_signal_handler(getattr(signal, name), end, name == LEAVING)
    try:
        return await work(ending)
    except asyncio.CancelledError:
        return DONE
