"""What clients send is bounded before it is built, and is text that can be written again."""

from __future__ import annotations

import json

import pytest

from app.core.clock import VirtualClock
from app.room.api.events import ServedModel
from app.serve.conversation import arguments_of
from app.serve.errors import ApiError
from app.serve.fields import Fields, parse
from app.serve.json_values import DEEPEST, MOST_CONTAINERS, read_json
from app.serve.parameters import Facts
from app.serve.responses_items import MOST_REFERRED
from app.serve.responses_request import responses_request
from app.serve.store import Store, Stored

FACTS = Facts(ServedModel("m", "M", 100_000), "curl")


@pytest.mark.parametrize("text", ["[],", "{},"])
def test_too_many_containers_are_refused_before_they_are_built(text: str) -> None:
    with pytest.raises(ApiError, match="lists and objects"):
        parse(f'{{"x":[{text * MOST_CONTAINERS}'.encode())
    with pytest.raises(ApiError, match="lists and objects"):
        arguments_of(f'{{"x":[{text * MOST_CONTAINERS}0]}}')


@pytest.mark.parametrize("text", ["[" * (MOST_CONTAINERS + 1), '["{' * MOST_CONTAINERS])
def test_brackets_in_a_text_are_no_containers(text: str) -> None:
    assert parse(json.dumps({"x": text}).encode()).text("x") == text


@pytest.mark.parametrize("end", ["", '"', "\\"])
def test_a_text_without_an_end_is_no_json(end: str) -> None:
    with pytest.raises(ValueError, match=r"Unterminated|escape"):
        read_json('{"' + '[\\"' * (MOST_CONTAINERS + 1) + "x\\" + end)


def test_depth() -> None:
    assert read_json("[" * DEEPEST + "]" * DEEPEST)
    for depth in (DEEPEST + 1, 100_000):
        with pytest.raises(ApiError, match="deeper"):
            read_json("[" * depth + "]" * depth)


@pytest.mark.parametrize(
    "body",
    [
        rb'{"x": "\ud83d"}',
        rb'{"\uDC00": 1}',
        b'{"x": "\xed\xa0\xbd"}',
        '{"x": "\ud83d"}'.encode("utf-16", "surrogatepass"),
        r'{"x": "\ud83d"}'.encode("utf-16"),
        r'{"x": "\ud83d"}'.encode("utf-32-le"),
    ],
)
def test_half_letters_are_refused_however_they_are_written(body: bytes) -> None:
    with pytest.raises(ApiError, match="not JSON"):
        parse(body)


def test_whole_letters_and_a_byte_order_mark_pass() -> None:
    assert parse(b"\xef\xbb\xbf" + rb'{"x": "\ud83d\ude00"}').text("x") == "\N{GRINNING FACE}"


def test_items_referred_to_count_as_if_they_were_sent() -> None:
    store = Store(VirtualClock())
    large = {"type": "web_search_call", "id": "large", "data": "x" * (MOST_REFERRED // 4)}
    said = {"type": "message", "role": "user", "content": "Hi", "id": "said"}
    store.put(Stored("r", {}, (large, said), ()))
    references = [{"type": "item_reference", "id": name} for name in ("said", *["large"] * 3)]
    asked = responses_request(Fields({"input": references}), FACTS, store)
    assert asked.items == (said, large, large, large)
    with pytest.raises(ApiError, match="referred to"):
        responses_request(Fields({"input": [*references, references[-1]]}), FACTS, store)
