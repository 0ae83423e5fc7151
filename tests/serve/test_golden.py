"""Streams byte for byte, and that they keep the orders the APIs demand (spec: product A-041, A-054, A-082)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.serve.golden_cases import FOLDER, Case, cases, stream_of

CASES = cases()
Event = dict[str, Any]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_stream_is_the_same_to_the_byte(case: Case) -> None:
    assert await stream_of(case) == case.file.read_bytes()


def test_no_stream_is_left_over() -> None:
    assert {path.name for path in FOLDER.glob("*.sse")} == {case.file.name for case in CASES}


def _events(api: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Streams of an API by name, each as pairs of an event's name and its data."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for case in CASES:
        if case.name.startswith(api):
            blocks = case.file.read_text("utf-8").split("\n\n")
            assert blocks.pop() == ""
            found.append((case.name, [_parts(block) for block in blocks]))
    assert found
    return found


def _parts(block: str) -> tuple[str, str]:
    *names, data = block.split("\n")
    assert data.startswith("data: ")
    return names[0].removeprefix("event: ") if names else "", data.removeprefix("data: ")


def _chat_word(data: str) -> str:
    """One letter a chunk: Role, Thought, Content, call Named, call Arguments, Finish, Usage, Done, Error."""
    if data == "[DONE]":
        return "D"
    chunk = json.loads(data)
    if "error" in chunk:
        return "E"
    if not chunk["choices"]:
        return "U"
    (choice,) = chunk["choices"]
    if choice["finish_reason"]:
        return "F"
    delta = choice["delta"]
    if "role" in delta:
        return "R"
    if "tool_calls" in delta:
        return "N" if "id" in delta["tool_calls"][0] else "A"
    return "T" if "reasoning_content" in delta else "C"


def test_chat_keeps_its_order() -> None:
    for name, events in _events("chat"):
        word = "".join(_chat_word(data) for _, data in events)
        broken = name == "chat-aborted"
        usage = "" if name == "chat-without-usage" else "U"
        assert re.fullmatch("RT*C*(NA*)*" + ("E" if broken else f"F{usage}D"), word), (name, word)


def test_messages_keep_their_order() -> None:
    for name, events in _events("messages"):
        kinds = [json.loads(data)["type"] for _, data in events]
        assert kinds == [event for event, _ in events]
        word = " ".join(kinds)
        block = "content_block_start (ping )?(content_block_delta )*content_block_stop "
        end = "message_delta message_stop"
        if name == "messages-aborted":
            block, end = "content_block_start (ping )?(content_block_delta )*", "error"
        assert re.fullmatch(f"message_start ({block})*{end}", word), (name, word)
        assert word.count("ping") == 1
        _check_blocks([json.loads(data) for _, data in events])


def _check_blocks(events: list[Event]) -> None:
    """Blocks are numbered in a row, and every delta is of the open block's kind."""
    deltas = {
        "text": ["text_delta"],
        "tool_use": ["input_json_delta"],
        "thinking": ["thinking_delta", "signature_delta"],
    }
    started = [event for event in events if event["type"] == "content_block_start"]
    assert [event["index"] for event in started] == list(range(len(started)))
    for event in events:
        if event["type"] == "content_block_delta":
            assert event["delta"]["type"] in deltas[started[event["index"]]["content_block"]["type"]]
    signatures = [event for event in events if event.get("delta", {}).get("type") == "signature_delta"]
    assert len(signatures) == sum(event["content_block"]["type"] == "thinking" for event in started)


ITEM = (
    r"output_item\.added content_part\.added (reasoning_text|output_text)\.delta"
    r"( \2\.delta)* \2\.done content_part\.done output_item\.done "
)
CALL = r"output_item\.added (function_call_arguments\.delta )*(function_call_arguments\.done )?output_item\.done "
CUSTOM = r"output_item\.added custom_tool_call_input\.delta custom_tool_call_input\.done output_item\.done "


def test_responses_keep_their_order() -> None:
    for name, events in _events("responses"):
        read = [json.loads(data) for _, data in events]
        assert [event["type"] for event in read] == [event for event, _ in events]
        assert [event["sequence_number"] for event in read] == list(range(len(read)))
        word = " ".join(event["type"].removeprefix("response.") for event in read)
        end = {"responses-cut": "incomplete", "responses-context": "incomplete", "responses-aborted": "failed"}
        if name == "responses-aborted":
            assert re.fullmatch(
                r"created in_progress output_item\.added content_part\.added output_text\.delta failed", word
            )
        else:
            items = f"({ITEM}|{CALL}|{CUSTOM})*"
            assert re.fullmatch(f"created in_progress {items}{end.get(name, 'completed')}", word), (name, word)
        _check_items(read)


def _check_items(events: list[Event]) -> None:
    """What was told piece by piece is what the last event says."""
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    last = events[-1]["response"]
    begun = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert not any(item.get("content") or item.get("arguments") or item.get("input") for item in begun)
    if last["status"] != "failed":
        assert last["output"] == done
    for event in events:
        assert event.get("part", {}).get("text", "") == "" or event["type"].endswith("part.done")
        if event["type"].endswith((".done", ".delta")) and "item_id" in event and done:
            assert event["item_id"] == done[event["output_index"]]["id"]
