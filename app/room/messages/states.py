"""Saved states on room nodes (spec: rooms §6.5)."""

from __future__ import annotations

from app.room.messages.base import Count, Line, Message, Slots


class CheckpointsLoaded(Message, frozen=True, tag="ai-ckpt-loaded"):
    """The slots a device holds; ours also says which it was to hold and could not."""

    slots: Slots = ()
    lost: Slots = ()


class CheckpointSave(Message, frozen=True, tag="ai-ckpt-save"):
    room: Line = ""
    slot: Count = 0
    h: Line = ""


class CheckpointLoad(Message, frozen=True, tag="ai-ckpt-load"):
    room: Line = ""
