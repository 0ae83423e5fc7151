"""Logging for people: warnings to the terminal, everything to a file when asked."""

from __future__ import annotations

import logging
import os


def set_up_logging() -> None:
    """``POOLED_DEBUG=1`` shows debug lines; ``POOLED_LOG`` names a file that gets them all."""
    debug = os.environ.get("POOLED_DEBUG") == "1"
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    path = os.environ.get("POOLED_LOG")
    if path:
        handlers.append(logging.FileHandler(path, encoding="utf-8"))
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.DEBUG if debug or path else logging.WARNING, format=form, handlers=handlers)
    handlers[0].setLevel(logging.DEBUG if debug else logging.WARNING)
    for noisy in ("aioice", "aiortc", "wgpu", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
