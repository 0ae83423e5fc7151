"""Byte ranges of weight files between devices (spec: rooms §6.3)."""

from __future__ import annotations

from app.room.messages.base import Line, Message


class InventoryRequest(Message, frozen=True, tag="ai-inv-req"):
    url: Line = ""


class Inventory(Message, frozen=True, tag="ai-inv"):
    url: Line = ""
    have: tuple[str, ...] = ()


class WeightRequest(Message, frozen=True, tag="ai-wget"):
    id: Line


class WeightPart(Message, frozen=True, tag="ai-wpart"):
    id: Line
    miss: bool = False
