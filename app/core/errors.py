"""The one tree of errors a person may read: what happened, and what to do about it."""

from __future__ import annotations


class PooledError(Exception):
    """An error with its two halves kept apart, so that every screen words them its own way.

    ``what`` says what happened, ``remedy`` what the person can do next (may be empty).
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what if not remedy else f"{what} {remedy}")
        self.what = what
        self.remedy = remedy


class FileError(PooledError):
    """A file that is missing, damaged, of another kind, or cannot be written."""


class ModelError(PooledError):
    """A model this program cannot run: unknown family, tensor type, size or tokenizer."""


class GpuError(PooledError):
    """The GPU refused, failed its check, or vanished."""


class OutOfMemory(GpuError):
    """An allocation past the pledge, or one the driver refused."""


class DeviceLost(GpuError):
    """The GPU went away; everything it held is gone, the process lives."""


class PromptError(PooledError):
    """A prompt that cannot be rendered or does not fit the context."""


class LinkError(PooledError):
    """A connection to another device or to the room server failed."""


class ProtocolError(PooledError):
    """A peer said something the protocol does not allow; drops that message."""


class RoomError(PooledError):
    """The room refused: full, busy, degraded, turned away."""


class StateError(PooledError):
    """A conversation's computed state cannot be used for what was asked."""
