"""A room as JSON, one object a line, for programs that watch it."""

from __future__ import annotations

import json

from rich.console import Console

from app.cli.commands import Show
from app.cli.text import safe
from app.room.state import Exchange, RoomState


class JsonView:
    """Says each fact when it changes. ``event`` names the fact; all text is free of control characters."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: dict[str, object] = {}
        self._ended: set[str] = set()

    def draw(self, state: RoomState) -> None:
        for event, fact in _facts(state).items():
            if self._said.get(event) != fact:
                self._said[event] = fact
                self.say(event.split()[0], fact)
        for exchange in state.transcript:
            if not exchange.live and exchange.id not in self._ended:
                self._ended.add(exchange.id)
                self.say("answer", _answer(exchange))

    def show(self, what: Show) -> None:
        """Everything was said when it changed."""

    def say(self, event: str, fact: dict[str, object]) -> None:
        self._console.file.write(json.dumps({"event": event, **_clean(fact)}, ensure_ascii=False) + "\n")
        self._console.file.flush()


def _facts(state: RoomState) -> dict[str, dict[str, object]]:
    facts: dict[str, dict[str, object]] = {
        "phase": {"phase": state.phase.value, "trouble": state.trouble, "remedy": state.remedy},
        "devices": {"devices": [_device_fact(state, i) for i in range(len(state.devices))]},
        "waiting": {"waiting": [{"id": r.id, "name": r.name, "gb": r.gb, "digits": r.digits} for r in state.waiting]},
        "model": {"model": state.model, "label": state.label},
    }
    if state.invite is not None:
        facts["invite"] = {"code": state.invite.code, "link": state.invite.link}
    if state.digits:
        facts["digits"] = {"digits": state.digits}
    for notice in state.notices:
        facts[f"notice {notice.id}"] = {"text": notice.text, "remedy": notice.remedy, "kind": notice.kind.value}
    return facts


def _device_fact(state: RoomState, at: int) -> dict[str, object]:
    device = state.devices[at]
    return {
        "name": device.name,
        "gb": device.gb,
        "layers": list(device.layers) if device.layers else None,
        "status": device.status.value,
        "me": device.me,
        "owner": device.creator,
    }


def _answer(exchange: Exchange) -> dict[str, object]:
    return {
        "asker": exchange.asker,
        "question": exchange.question,
        "answer": exchange.answer,
        "failed": exchange.failed,
        "stats": exchange.stats,
    }


def _clean(fact: dict[str, object]) -> dict[str, object]:
    return {key: safe(value) if isinstance(value, str) else value for key, value in fact.items()}
