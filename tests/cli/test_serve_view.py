"""What ``pooled serve`` says of itself, its model and its clients."""

from __future__ import annotations

import json

from app.cli.serve_view import HIDDEN_KEY, ServeView
from app.room.api.events import ServedModel
from app.serve.status import ClientCount, Phase, ServeStatus
from tests.cli.fake_room import printer

TINY = ServedModel("tiny", "Tiny", 2048)
PORT = 8123


def test_where_the_api_is_comes_first() -> None:
    made, out = printer()
    ServeView(made, "").listening("4TKG9P", PORT)
    said = out.getvalue()
    assert "Room 4TK-G9P" in said
    assert "http://127.0.0.1:8123/v1\n" in said
    assert "http://127.0.0.1:8123\n" in said


def test_settings_are_those_of_the_model_and_come_again_when_its_context_changes() -> None:
    made, out = printer()
    view = ServeView(made, "")
    view.model(None, PORT)
    view.model(None, PORT)
    assert out.getvalue().count("No model runs") == 1
    for context in (2048, 2048, 4096):
        view.model(ServedModel("tiny", "Tiny", context), PORT)
    said = out.getvalue()
    assert said.count("model_context_window = 2048") == 1
    assert said.count("model_context_window = 4096") == 1
    for tool in ("curl", "Codex", "Claude Code", "opencode"):
        assert f"\n{tool}: " in said
    view.model(None, PORT)
    assert out.getvalue().count("No model runs") == 2


def test_the_token_stands_only_on_a_terminal() -> None:
    piped, out = printer()
    ServeView(piped, "secret").model(TINY, PORT)
    assert "secret" not in out.getvalue()
    assert HIDDEN_KEY in out.getvalue()
    terminal, out = printer(interactive=True, color_system=None)
    ServeView(terminal, "secret").model(TINY, PORT)
    assert "secret" in out.getvalue()


def test_what_programs_ask_is_a_line_each() -> None:
    made, out = printer()
    view = ServeView(made, "")
    view.changed(ServeStatus(Phase.WAITING))
    view.changed(ServeStatus(Phase.CONNECTED, "Codex", (ClientCount("Codex"),)))
    view.changed(ServeStatus(Phase.ANSWERING, "Codex", (ClientCount("Codex"),)))
    view.changed(ServeStatus(Phase.CONNECTED, "Codex", (ClientCount("Codex", 1),), 1))
    view.changed(ServeStatus(Phase.CONNECTED, "Codex", (ClientCount("Codex", 1),), 1))
    assert out.getvalue().splitlines() == ["Codex is connected.", "Codex asks.", "Codex: answered, 1 in all."]


def test_all_of_it_as_json() -> None:
    made, out = printer()
    view = ServeView(made, "secret", json_log=True)
    view.listening("4TKG9P", PORT)
    view.model(TINY, PORT)
    view.changed(ServeStatus(Phase.CONNECTED, "Codex", (ClientCount("Codex", 1),), 1))
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["listening", "model", "connected", "answered"]
    assert events[0]["port"] == PORT
    assert events[1]["context"] == 2048
    assert "secret" not in out.getvalue()
