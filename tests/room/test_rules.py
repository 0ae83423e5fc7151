"""Small pure rules: the queue, silence, segments, the roster, the picker's rows."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.units import GIB
from app.engine.types import ColumnClass
from app.models.table import ModelRecord, builtin_table
from app.room.events import Member
from app.room.liveness import Role, Subject, Verdict, Watch, hold_after, judge
from app.room.memory import need
from app.room.meta import Meta, meta_map, read_meta
from app.room.picker import Screen, Wish, deal_order, model_rows, plan
from app.room.planner import Offer, SplitMode, deal, fit
from app.room.pledges import suggested_gb
from app.room.roster import Roster, read_roster
from app.room.segments import Fed, Segment, feed_plan, rounds

STEP, PROMPT = ColumnClass.STEP, ColumnClass.PROMPT


@pytest.mark.parametrize(
    ("role", "silence", "verdict"),
    [
        (Role.COMPUTER, 7.4, Verdict.ALIVE),
        (Role.COMPUTER, 7.6, Verdict.SILENT),
        (Role.COMPUTER, 15.1, Verdict.GONE),
        (Role.CHAIN, 12.1, Verdict.GONE),
        (Role.PHONE, 59, Verdict.SILENT),
        (Role.CREATOR, 29, Verdict.SILENT),
        (Role.CHAIN_WHILE_STARTING, 44, Verdict.SILENT),
    ],
)
def test_idle_silence(role: Role, silence: float, verdict: Verdict) -> None:
    assert judge(Subject(role, heard=100), Watch(99.9 + silence), 100 + silence) is verdict


def test_silence_while_answering_counts_from_the_answer() -> None:
    subject = Subject(Role.CHAIN, heard=90, rtt=0.1)
    assert judge(subject, Watch(99.9, answering_since=98), 100) is Verdict.ALIVE
    assert judge(subject, Watch(101.4, answering_since=98), 101.6) is Verdict.SILENT
    assert hold_after(0.1) == 3.5
    assert hold_after(9) == 5


def test_a_late_own_tick_judges_nobody() -> None:
    assert judge(Subject(Role.COMPUTER, heard=0), Watch(80), 100) is Verdict.ALIVE
    late = Watch(98.5, answering_since=90).ticked(100)
    assert late.answering_since == 100


def test_loading_devices_are_never_judged() -> None:
    assert judge(Subject(Role.CHAIN, heard=0, loading=True), Watch(99.9), 100) is Verdict.ALIVE


def test_segments_remember_classes_for_recomputing() -> None:
    fed = Fed().grown([1, 2, 3], PROMPT).grown([4], STEP).grown([5], STEP)
    assert fed.segments == (Segment(0, 3, PROMPT), Segment(3, 5, STEP))
    assert feed_plan(fed, [1, 2, 3, 4, 5, 6], 5) == (Segment(5, 6, STEP),)
    again = feed_plan(fed, [1, 2, 3, 4, 5, 6], 0)
    assert again == (Segment(0, 3, PROMPT), Segment(3, 5, STEP), Segment(5, 6, STEP))
    other = feed_plan(fed, [1, 2, 9, 9, 9], 0)
    assert other == (Segment(0, 2, PROMPT), Segment(2, 4, PROMPT), Segment(4, 5, STEP))
    assert feed_plan(Fed(), [7], 0) == (Segment(0, 1, STEP),)


def test_rounds_never_mix_classes() -> None:
    cut = list(rounds((Segment(0, 20, PROMPT), Segment(20, 23, STEP)), 16))
    assert [(s.start, s.end) for s in cut] == [(0, 16), (16, 20), (20, 23)]


OTTER = Member("pooled-room-4TKG9P", "otter", Meta(ua="Mac", webgpu=True, contrib_gb=18, gbps=100))
HERON = Member("b", "heron", Meta(ua="Device", webgpu=True, contrib_gb=10))
FINCH = Member("c", "finch", Meta(ua="iPhone", phone=True))


def test_roster_replaces_a_returning_device_in_place() -> None:
    roster = Roster((OTTER, HERON, FINCH)).with_member(replace(HERON, id="z"))
    assert [member.id for member in roster.members] == [OTTER.id, "z", "c"]
    assert roster.with_pledge("z", 4, paused=False).named("heron") == replace(
        HERON, id="z", meta=replace(HERON.meta, contrib_gb=4)
    )
    assert roster.without("z").names == {"otter", "finch"}
    assert [m.name for m in read_roster(roster.message()).members] == ["otter", "heron", "finch"]


def test_meta_survives_the_trip() -> None:
    meta = Meta(ua="Device", webgpu=True, webgpu_said=True, gpu="nvidia ada", contrib_gb=8, gbps=300, dspec=1)
    assert read_meta(meta_map(meta)) == meta


def rows_of(*members: Member, me: str = OTTER.id) -> dict[str, object]:
    rows = model_rows(builtin_table(), members, OTTER.id, Wish(), Screen(me))
    return {row.key: row for row in rows}


def test_rows_say_what_fits_where() -> None:
    rows: dict[str, object] = rows_of(OTTER, HERON, FINCH)
    sentences = {key: getattr(row, "sentence") for key, row in rows.items()}  # noqa: B009
    assert sentences["smollm2-135m-q4_1"] == "fits on otter alone"
    assert sentences["qwen3.6-35b-moe"] == "fits, 2 devices"
    assert sentences["qwen3.5-122b-moe"].endswith("GB more needed")


def test_short_row_says_who_could_help() -> None:
    small = replace(OTTER, meta=replace(OTTER.meta, contrib_gb=2))
    row = next(r for r in model_rows(builtin_table(), (small,), small.id, Wish(), Screen(small.id)) if not r.fits)
    assert row.key == "qwen3-1.7b"
    assert row.helpers == ("otter",)
    assert row.own_raise_gb == 3


def test_an_own_row_is_there_for_the_device_that_has_it_alone() -> None:
    own = msgspec.structs.replace(builtin_table().get("qwen3-0.6b"), key="mine", own=True, picker=True)
    table, members = builtin_table().with_record(own), (OTTER, HERON)
    here = {row.key: row for row in model_rows(table, members, OTTER.id, Wish(), Screen(OTTER.id))}
    assert here["mine"].sentence == f"fits on {OTTER.name} alone"
    there = model_rows(table, members, OTTER.id, Wish(), Screen(HERON.id))
    assert "mine" not in {row.key for row in there}


def test_no_gpu_in_the_room_no_rows() -> None:
    assert model_rows(builtin_table(), (FINCH,), "c", Wish(), Screen("c")) == ()


def test_no_plan_holds_more_than_was_pledged() -> None:
    for record in builtin_table().models:
        for gb in (1, 2, 4, 8, 16, 40):
            members = deal_order((replace(OTTER, meta=replace(OTTER.meta, contrib_gb=gb)), HERON), OTTER.id)
            planned = plan(record, members, Wish())
            for i, held in zip(planned.deal.used, planned.deal.held, strict=True):
                assert held <= members[i].meta.contrib_gb * GIB + 1


GB = st.floats(0.1, 24)
OFFERS = st.lists(
    st.builds(Offer, GB.map(lambda gb: gb * GIB), st.booleans(), st.just(0.0), st.none() | st.floats(0.01, 9)),
    min_size=1,
    max_size=6,
)


@given(OFFERS, st.sampled_from(SplitMode), st.sampled_from(builtin_table().models), st.booleans())
def test_every_deal_is_whole_and_within_every_pledge(
    offers: list[Offer], mode: SplitMode, record: ModelRecord, phone_layers: bool
) -> None:
    needed = need(record, 4096, "f16")
    dealt = deal(needed, offers, mode, phone_layers=phone_layers)
    fitted = fit(needed, offers)
    assert dealt.fits == fitted.fits == (fitted.missing == 0)
    if not dealt.fits:
        assert fitted.short == min(fitted.raises) > 0
        return
    ends = [0, *(hi for _, hi in dealt.ranges)]
    assert [lo for lo, _ in dealt.ranges] == ends[:-1]
    assert ends[-1] == record.layers
    assert dealt.used[0] == 0
    assert sorted([*dealt.used, *dealt.out]) == list(range(len(offers)))
    for i, held in zip(dealt.used, dealt.held, strict=True):
        assert held <= offers[i].pledge + 1


@given(OFFERS, st.sampled_from(builtin_table().models))
def test_the_smallest_raise_makes_a_short_room_fit(offers: list[Offer], record: ModelRecord) -> None:
    needed = need(record, 4096, "f16")
    fitted = fit(needed, offers)
    if fitted.fits:
        return
    helper = fitted.raises.index(fitted.short)
    offers[helper] = replace(offers[helper], pledge=offers[helper].pledge + fitted.short)
    assert fit(needed, offers).fits


def test_first_pledge_suggestion() -> None:
    assert [suggested_gb(gb) for gb in (0.5, 3, 6, 16, 24, 200)] == [1, 3, 4, 8, 12, 64]
