"""What ``pooled serve`` says: where the API is, settings to paste, a line a request (spec: product A-099)."""

from __future__ import annotations

import json

from app.cli.printer import ACCENT, QUIET, Printer
from app.cli.text import safe
from app.room.api.events import ServedModel
from app.room.codes import format_code
from app.serve.config import root_url
from app.serve.settings_for_tools import ANY_KEY, Address, settings_for_tools
from app.serve.status import Phase, ServeStatus

SHOWN = frozenset({"curl", "Codex", "Claude Code", "opencode"})
HIDDEN_KEY = "$POOLED_TOKEN"
"""Stands for the token where the output may be kept in a file."""


class ServeView:
    """``token`` "": clients may send any key. ``json_log``: one object a line."""

    def __init__(self, printer: Printer, token: str, *, json_log: bool = False) -> None:
        self._printer = printer
        self._token = token
        self._json = json_log
        self._shown: ServedModel | None = None
        self._told = False
        self._before = ServeStatus()

    def listening(self, room: str, port: int) -> None:
        if self._json:
            return self._object("listening", room=room, port=port)
        line = self._printer.line
        line(f"Room {format_code(room)} answers programs on this computer.", ACCENT)
        line(f"  OpenAI     {root_url(port)}/v1")
        line(f"  Anthropic  {root_url(port)}")
        line(f"  Key        {'the token you set' if self._token else 'any'}")
        return line("The device that runs the model reads what is asked. Ctrl-C ends this.", QUIET)

    def model(self, model: ServedModel | None, port: int) -> None:
        """Says settings for the model that runs, again whenever it or its context changes."""
        if self._told and model == self._shown:
            return
        self._shown, self._told = model, True
        if self._json:
            self._object("model", model=model.key if model else "", context=model.context if model else 0)
        elif model is None:
            self._printer.line("No model runs in the room; requests are told to try again.", "bold")
        else:
            self._settings(Address(port, model, self._key()))

    def _key(self) -> str:
        if not self._token:
            return ANY_KEY
        return self._token if self._printer.console.is_terminal else HIDDEN_KEY

    def _settings(self, address: Address) -> None:
        line = self._printer.line
        line(f"{safe(address.model.label)} is ready, context {address.model.context}.", ACCENT)
        for tool in settings_for_tools(address):
            if tool.tool in SHOWN:
                line(f"\n{tool.tool}: {tool.where}", QUIET)
                line(safe(tool.text).rstrip("\n"))

    def changed(self, status: ServeStatus) -> None:
        """A line when a program comes, asks, and has its answer."""
        before, self._before = self._before, status
        answered = {client.name: client.answered for client in before.clients}
        for client in status.clients:
            if client.name not in answered:
                self._event("connected", client.name, f"{client.name} is connected.")
            if client.answered > answered.get(client.name, 0):
                text = f"{client.name}: answered, {client.answered} in all."
                self._event("answered", client.name, text)
        if status.phase is Phase.ANSWERING and before.phase is not Phase.ANSWERING:
            self._event("asked", status.tool, f"{status.tool} asks.")

    def _event(self, event: str, client: str, text: str) -> None:
        if self._json:
            self._object(event, client=client)
        else:
            self._printer.line(text, QUIET)

    def _object(self, event: str, **facts: object) -> None:
        self._printer.line(json.dumps({"event": event, **facts}, ensure_ascii=False))
