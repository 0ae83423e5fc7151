"""What the speed column says in a sentence, and the figures under it."""

from __future__ import annotations

from app.room.state import Device, RoomState
from app.ui import words

WIRE_SHARE = 0.15
"""From this share of a word's time on, the way between devices is worth a sentence."""


def sentence(state: RoomState) -> str:
    """What matters most about the speed now."""
    speed, holders = state.speed, [device for device in state.people if device.layers]
    lost = next((device for device in holders if device.silent or device.away), None)
    if lost is not None:
        state_word = "is gone" if lost.away else "is not responding"
        return f"{lost.name} holds {words.layers(lost.layers or (0, 0))} and {state_word}."
    if not speed.ms_per_word:
        return "Nothing measured yet. Figures come with the first answer."
    if len(holders) == 1:
        return f"{holders[0].name} runs the whole model. Nothing has to travel."
    if speed.wire_ms >= WIRE_SHARE * speed.ms_per_word:
        return _wire_sentence(state, holders)
    slowest = max(holders, key=lambda device: device.ms or 0.0)
    spent = f"{slowest.ms or 0:.0f} of {speed.ms_per_word:.0f} ms"
    return f"{slowest.name} takes the longest: {spent} a word are spent there."


def _wire_sentence(state: RoomState, holders: list[Device]) -> str:
    speed = state.speed
    spent = f"{speed.wire_ms:.0f} of {speed.ms_per_word:.0f} ms are spent on the way"
    relayed = [device.name for device in holders if device.path == "relay"]
    if relayed:
        return f"{words.names(relayed)} can only be reached through a relay: {spent}."
    quick = 1000 / max(speed.ms_per_word - speed.wire_ms, 1.0)
    afar = max((d for d in holders if not d.me), key=lambda d: d.wire_ms or 0.0, default=None)
    who = f"The way to {afar.name}" if afar is not None else "The network"
    return f"{who} holds the room back: {spent}. Without it the room would give about {quick:.0f} tok/s."


def facts(state: RoomState) -> list[tuple[str, str]]:
    """Only what was measured."""
    speed, found = state.speed, list[tuple[str, str]]()
    if speed.drafts_accepted is not None:
        found.append(("Drafts accepted", words.percent(speed.drafts_accepted)))
    if speed.prefill_per_second:
        found.append(("Prompt reading", f"{speed.prefill_per_second:,.0f} tok/s"))
    if speed.reused:
        found.append(("Reused from last turn", f"{speed.reused:,} tokens"))
    if speed.best:
        found.append(("Fastest so far", f"{speed.best:.1f} tok/s"))
    paths = {device.path for device in state.people if not device.me and device.path != "unknown"}
    if paths:
        found.append(("Connection", "through a relay" if "relay" in paths else "direct"))
    return found
