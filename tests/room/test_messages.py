"""Messages: what comes in is typed or dropped, what goes out is what peers expect."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import ProtocolError
from app.room import messages as m
from app.room.authority import CHAIN_ONLY, CREATOR_ONLY, HOST_ONLY, Viewpoint, counts
from app.room.binarypack import pack
from app.room.meta import Meta, meta_map, read_meta
from app.room.names import clean_line, clean_name, unique_name

CREATOR, ME, OTHER = "pooled-room-4TKG9P", "me", "other"


@pytest.mark.parametrize(
    "message",
    [
        m.Hello(name="otter", meta={"ua": "Mac", "webgpu": True}, v=4, back=True, died=m.Died("load", 3.5, True)),
        m.Bye(reason="closed", closed=True),
        m.Roster(members=(m.RosterEntry("a", "otter", {"contribGB": 8}, True),)),
        m.Load(model="m", range=(3, 9), ctx=2048, next="b", host="h", prev="a"),
        m.Layers(by={"otter": "0–9"}, held={"otter": 1.5}, out={"finch": "unneeded"}),
        m.ReadyAll(model="m", label="M", ctx=8192, ctxWant=16384),
        m.AnswerDone(stats="9 tok", ctx=m.ContextUse(9, 99), capped=True),
        m.History(items=(m.HistoryItem("otter", "q", "a", "s", "1"),)),
        m.RoomMap(nodes=(m.MapNode("otter", "0–9", 3.5, True),), st=m.MapStats(tps=41.8), live=True),
        m.Ping(ts=12.5),
        m.Telemetry(k=m.Timings(one=4.5)),
        m.StopAnswer(),
    ],
)
def test_a_message_survives_the_trip(message: m.Message) -> None:
    assert m.decode(m.encode(message)) == message


def test_flags_are_ones_and_absent_when_false() -> None:
    assert m.encode(m.Bye(reason="x", closed=True)) == {"t": "bye", "reason": "x", "closed": 1}
    assert m.encode(m.Bye(reason="x")) == {"t": "bye", "reason": "x"}


def test_defaults_that_peers_need_are_sent() -> None:
    load = m.encode(m.Load(model="m", range=(0, 4), ctx=2048))
    assert (load["v"], load["kv"], load["next"]) == (4, "f16", "host")
    assert m.encode(m.QueueLength()) == {"t": "ai-queue", "n": 0}


def test_nulls_and_unknown_members_are_ignored() -> None:
    raw = {"t": "ai-gendone", "stats": None, "ctx": {"used": 3, "max": 9, "new": 1}, "failed": 1, "later": []}
    assert m.decode(raw) == m.AnswerDone(ctx=m.ContextUse(3, 9), failed=True)


@pytest.mark.parametrize("raw", [{}, {"t": "ai-code-start"}, {"t": 7}, {"t": None}, {"t": ["ping"]}])
def test_unknown_messages_are_dropped(raw: dict[str, object]) -> None:
    assert m.decode(raw) is None


@pytest.mark.parametrize(
    "raw",
    [
        {"t": "ai-load", "model": "m", "range": [1], "ctx": 9},
        {"t": "ai-load", "model": "m", "range": [-1, 4], "ctx": 9},
        {"t": "ai-load", "model": 5, "range": [0, 4], "ctx": 9},
        {"t": "roster", "members": [{"name": "no id"}]},
        {"t": "roster", "members": [{"id": str(i)} for i in range(300)]},
        {"t": "ai-ask", "text": "x" * 300_000},
        {"t": "pledge", "gb": -1},
        {"t": "ai-hostprog", "all": {"a": "much"}},
    ],
)
def test_malformed_messages_are_typed_errors(raw: dict[str, object]) -> None:
    with pytest.raises(ProtocolError):
        m.decode(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(m.KINDS)), st.dictionaries(st.text(max_size=6), JSON, max_size=6), JSON)
def test_no_input_raises_anything_else(tag: str, members: dict[str, object], value: object) -> None:
    fields = dict.fromkeys(m.KINDS[tag].__struct_fields__, value)
    for raw in ({**members, "t": tag}, {**fields, "t": tag}):
        with contextlib.suppress(ProtocolError):
            assert isinstance(m.decode(raw), m.Message)


def test_layer_words_are_inclusive_with_an_en_dash() -> None:
    assert m.layer_words(0, 26) == "0–25"
    assert m.read_layer_words("0–25") == (0, 26)
    assert m.read_layer_words("3 to 3") == (3, 4)
    assert m.read_layer_words("9–3") is None
    assert m.read_layer_words("²–³") is None


def sample(kind: type[m.Message]) -> m.Message:
    required = {"members": [], "id": "x", "model": "m", "range": [0, 1], "ctx": 1, "next": "x", "gb": 1}
    fields = {field.name: required[field.name] for field in msgspec.structs.fields(kind) if field.required}
    message = m.decode({"t": str(kind.__struct_config__.tag), **fields})
    assert message is not None
    return message


@pytest.mark.parametrize("kind", sorted(HOST_ONLY, key=str))
def test_host_only_messages_count_from_the_followed_host_alone(kind: type[m.Message]) -> None:
    message = sample(kind)
    assert counts(message, CREATOR, Viewpoint(ME, CREATOR))
    assert not counts(message, OTHER, Viewpoint(ME, CREATOR))
    assert counts(message, OTHER, Viewpoint(ME, CREATOR, followed=OTHER))
    assert not counts(message, CREATOR, Viewpoint(ME, CREATOR, followed=OTHER))
    assert not counts(message, OTHER, Viewpoint(CREATOR, CREATOR))


@pytest.mark.parametrize("kind", sorted(CREATOR_ONLY, key=str))
def test_creator_only_messages(kind: type[m.Message]) -> None:
    assert counts(sample(kind), CREATOR, Viewpoint(ME, CREATOR, followed=OTHER))
    assert not counts(sample(kind), OTHER, Viewpoint(ME, CREATOR, followed=OTHER))


@pytest.mark.parametrize("kind", sorted(CHAIN_ONLY, key=str))
def test_chain_messages_count_from_chain_members_alone(kind: type[m.Message]) -> None:
    view = Viewpoint(CREATOR, CREATOR, chain={OTHER})
    assert counts(sample(kind), OTHER, view)
    assert not counts(sample(kind), "stranger", view)
    assert not counts(sample(kind), OTHER, Viewpoint(ME, CREATOR, chain={OTHER}))


def test_names_are_cleaned_and_unique() -> None:
    assert clean_name(" <b>ot\x00ter</b> ", "peer-1234") == "botter/b"
    assert clean_name("\u202e", "12345678-9") == "12345678"
    assert clean_name(None, "12345678-9") == "12345678"
    assert clean_name("ot\u2028te\x85r\ufffe", "p") == "otter"
    assert clean_name("\u5c71\u3000\u7530", "p") == "\u5c71\u3000\u7530"
    assert clean_line("so\x1b[2J it\u202e is\x07") == "so[2J it is"
    assert len(clean_name("x" * 90, "p")) == 40
    assert unique_name("otter", {"heron"}) == "otter"
    assert unique_name("otter", {"otter", "otter 2"}) == "otter 3"
    assert len(unique_name("x" * 40, {"x" * 40})) == 38


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_counts_as_not_said(number: float) -> None:
    """It would pass every bound of a type, and no message could be made of it."""
    assert m.decode({"t": "ai-progress", "pct": number}) == m.LoadShare()
    assert m.decode({"t": "ai-tele", "k": {"one": number, "pre": 2.0}}) == m.Telemetry(k=m.Timings(pre=2.0))
    with pytest.raises(ProtocolError):
        m.decode({"t": "ai-load", "model": "m", "range": [number, 3], "ctx": 64})


@pytest.mark.parametrize("word", ["nan", "inf", "-Infinity", "1e308", "9" * 400])
def test_a_word_for_no_number_is_refused(word: str) -> None:
    """A number may come as text, and these would be read as one that nobody can be told."""
    for raw in ({"t": "ai-tele", "amax": word}, {"t": "ai-hostprog", "all": {"otter": word}}):
        with pytest.raises(ProtocolError):
            m.decode(raw)
    assert m.decode({"t": "ai-token", "text": word}) == m.Token(text=word)


@pytest.mark.parametrize("stamp", [1e308, -1.0])
def test_a_stamp_that_cannot_be_sent_back_is_refused(stamp: float) -> None:
    with pytest.raises(ProtocolError):
        m.decode({"t": "ping", "ts": stamp})


@pytest.mark.parametrize("length", [0, m.LONGEST_LINE, m.LONGEST_LINE + 1, 10**6])
def test_a_line_of_any_length_is_taken_by_others(length: int) -> None:
    said = m.StartFailed(why=m.line("x" * length))
    assert m.decode(m.encode(said)) == said
    assert len(said.why) == min(length, m.LONGEST_LINE)


@pytest.mark.parametrize("size", [-1, -(2**40), -(2**40) + 0.5, 2**60, float("nan"), "-inf", "-3"])
def test_impossible_sizes_count_as_not_said(size: object) -> None:
    meta = read_meta({"contribGB": size, "maxBindMB": size, "webgpu": 1})
    assert meta == Meta(webgpu=True, webgpu_said=True)
    assert pack(meta_map(meta))
