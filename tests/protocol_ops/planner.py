"""Planner operations: bytes, contexts, pledges, splits, picks, whole rooms."""

from __future__ import annotations

import math
from typing import Any

from app.core.units import GIB
from app.models.table import ModelRecord, builtin_table
from app.room.contexts import (
    context_choices,
    open_context,
    smallest_binding,
    wanted_context,
    within_binding,
)
from app.room.memory import Need, kv_buffer_position, kv_layer_position, kv_word, need
from app.room.meta import Meta, read_meta
from app.room.offload import ExpertSizes, Parking, expert_sizes
from app.room.pick import Candidate, pick_model_host
from app.room.planner import Deal, Fit, Offer, SplitMode, deal, fit
from app.room.pledges import pledge_gb, pledge_rule, ram_gb, share_after_death, spare_gb
from app.room.shortage import gb_up, shortage
from app.room.split import Split, split_by_memory, split_for_speed
from tests.protocol_ops import op


def _record(key: str) -> ModelRecord:
    return builtin_table().get(key)


def _plain(value: float) -> float | int | str:
    if math.isinf(value):
        return "Infinity"
    return int(value) if value == int(value) else value


@op("bytes")
def _bytes(given: dict[str, Any]) -> dict[str, Any]:
    record = _record(given["model"])
    wants = need(record, given["ctx"], given["kv"], published=True)
    return {
        "L": wants.layers,
        "layerBytes": _plain(wants.layer_bytes),
        "hostBytes": wants.host_bytes,
        "expertBytes": record.experts.layer_bytes if record.experts else 0,
        "totalGiB": wants.total / GIB,
    }


@op("experts")
def _experts(given: dict[str, Any]) -> dict[str, Any]:
    record = _record(given["model"])
    sizes, shape = expert_sizes(record), record.recurrent
    assert sizes is not None
    assert shape is not None
    convolution = 2 * shape.state * shape.groups + shape.inner
    state = shape.value_heads * shape.state**2 * 4 + 3 * convolution * 4
    interval = record.attention_interval
    return {
        "E": sizes.freed,
        "nExp": sizes.count,
        "slicesFirst": list(sizes.slices[0]),
        "slicesLast": list(sizes.slices[-1]),
        "parkedPerLayer": [sizes.parked(i, i + 1) for i in range(record.layers)],
        "kvPos": _plain(kv_layer_position(record, "f16", published=True)),
        "statePerLayer": state * (interval - 1) // interval,
        "work": record.scratch_bytes,
    }


@op("kv_per_layer_pos")
def _kv_per_layer_pos(given: dict[str, Any]) -> dict[str, Any]:
    record, kv = _record(given["model"]), given["kv"]
    averaged = kv_layer_position(record, kv, published=True)
    return {"averaged": _plain(averaged), "buffer": kv_buffer_position(record, kv, published=True)}


@op("ctx_for_binding")
def _ctx_for_binding(given: dict[str, Any]) -> int:
    binding = smallest_binding([Meta(max_bind_mb=given["maxBindMB"])])
    return within_binding(_record(given["model"]), given["ctx"], given["kv"], binding)


@op("ctx_ask")
def _ctx_ask(given: dict[str, Any]) -> dict[str, Any]:
    record = builtin_table().find(given["model"])
    wanted = wanted_context(record, given["ask"])
    return {"ctx": wanted, "choices": list(context_choices(record, wanted, given["ask"]))}


@op("ctx_choices")
def _ctx_choices(given: dict[str, Any]) -> list[int]:
    return list(context_choices(_record(given["model"]), given["want"], given["ask"]))


@op("kv_mode")
def _kv_mode(given: dict[str, Any]) -> str:
    record = builtin_table().find(given["model"])
    return kv_word(record, given["ask"]) if record else "f16"


@op("kv_for_load")
def _kv_for_load(given: dict[str, Any]) -> str:
    return kv_word(_record(given["model"]), given["sent"] or given["own"])


@op("pledge_rule")
def _pledge_rule(given: dict[str, Any]) -> dict[str, Any]:
    rule = pledge_rule(given["kind"] or "", given["deviceMemory"])
    return {
        "min": rule.smallest,
        "def": rule.default,
        "max": rule.largest,
        "step": rule.step,
        "capped": rule.capped,
    }


@op("pledge_gb")
def _pledge_gb(given: dict[str, Any]) -> float:
    return pledge_gb(read_meta(given["meta"]), given["hostCap"] or 0)


@op("after_load_death")
def _after_load_death(given: dict[str, Any]) -> dict[str, Any]:
    gb = share_after_death(given["layers"], given["layerGB"], given["gb"], given["deaths"])
    return {"drop": True} if gb is None else {"drop": False, "gb": gb}


@op("ram_gb")
def _ram_gb(given: Any) -> float:
    return ram_gb(read_meta(given))


@op("is_phone")
def _is_phone(given: Any) -> bool:
    return read_meta(given).is_phone


@op("gb_up")
def _gb_up(given: float) -> float:
    return gb_up(given)


def _split(split: Split) -> dict[str, Any]:
    ranges = [list(bounds) for bounds in split.ranges]
    return {"assigned": list(split.assigned), "ranges": ranges, "short": split.short}


@op("split_plain")
def _split_plain(given: dict[str, Any]) -> dict[str, Any]:
    weights = given["weights"]
    return _split(split_by_memory(given["L"], weights, [given["L"]] * len(weights)))


@op("split_within")
def _split_within(given: dict[str, Any]) -> dict[str, Any]:
    return _split(split_by_memory(given["L"], given["weights"], given["max"]))


@op("speed")
def _speed(given: dict[str, Any]) -> dict[str, Any]:
    split = split_for_speed(given["L"], given["caps"], given["ms"] or (), given["phone"] or ())
    return {**_split(split), "used": list(split.used)}


@op("pick_host")
def _pick_host(given: list[dict[str, Any]]) -> str | None:
    return pick_model_host(Candidate(device["id"], read_meta(device["meta"])) for device in given)


def _fit(fitted: Fit, *, say_no: bool) -> dict[str, Any]:
    said: dict[str, Any] = {
        "fits": fitted.fits,
        "caps": list(fitted.caps),
        "missing": fitted.missing,
        "short": _plain(fitted.short),
        "raise": [_plain(extra) for extra in fitted.raises],
    }
    if fitted.offload:
        return {**said, "offload": True, "residentCaps": list(fitted.resident_caps)}
    return {**said, "offload": False} if say_no else said


def _parking(parking: Parking | None) -> dict[str, int] | None:
    if parking is None:
        return None
    return {
        "layers": parking.layers,
        "vramBytes": parking.vram_bytes,
        "ramBytes": parking.ram_bytes,
        "slots": parking.slots,
        "lo": parking.lo,
        "hi": parking.hi,
    }


def _deal(dealt: Deal) -> dict[str, Any]:
    said: dict[str, Any] = {
        "used": list(dealt.used),
        "assigned": list(dealt.assigned),
        "ranges": [list(bounds) for bounds in dealt.ranges],
        "held": list(dealt.held),
        "out": {str(i): why.value for i, why in dealt.out.items()},
    }
    if dealt.parkings:
        said["offload"] = [_parking(parking) for parking in dealt.parkings]
    return said


@op("digest_example")
def _digest_example(given: dict[str, Any]) -> dict[str, Any]:
    record = _record(given["model"])
    wants = need(record, given["ctx"], "f16", published=True)
    offers = [_offer(given, i) for i in range(len(given["pledgesGB"]))]
    experts = expert_sizes(record)
    dealt = deal(wants, offers, SplitMode(given["mode"]), experts)
    held = [size / GIB for size in dealt.held]
    return {"fit": _fit(fit(wants, offers, experts), say_no=False), **_deal(dealt), "heldGiB": held}


def _offer(given: dict[str, Any], i: int) -> Offer:
    def at(name: str, default: Any) -> Any:
        row = given[name] or []
        return row[i] if i < len(row) else default

    ram = at("ramGB", 0) * GIB
    return Offer(given["pledgesGB"][i] * GIB, at("phone", False), ram, at("ms", None))


@op("room")
def _room(given: dict[str, Any]) -> dict[str, Any]:
    record = _record(given["model"])
    devices = {device["id"]: read_meta(device["meta"]) for device in given["devices"]}
    host = pick_model_host(Candidate(*device) for device in devices.items())
    assert host is not None
    others = sorted(peer for peer, meta in devices.items() if peer != host and meta.webgpu)
    order = [host, *others]
    metas = [devices[peer] for peer in order]
    offers = [
        Offer(pledge_gb(meta) * GIB, meta.is_phone, ram_gb(meta) * GIB, given["msPerLayer"].get(peer))
        for peer, meta in zip(order, metas, strict=True)
    ]
    return {"host": host, "order": order, **_whole_room(given, record, metas, offers)}


def _whole_room(given: dict[str, Any], record: ModelRecord, metas: list[Meta], offers: list[Offer]) -> dict[str, Any]:
    kv = kv_word(record, given["kv"])
    experts = expert_sizes(record)
    binding = smallest_binding(metas)
    wanted = within_binding(record, wanted_context(record, given["ctxAsk"]), kv, binding)
    choices = context_choices(record, wanted, given["ctxAsk"])

    def needed(context: int) -> Need:
        return need(record, context, kv, published=True)

    opened = open_context(choices, lambda context: fit(needed(context), offers, experts).fits)
    wants = needed(opened.positions)
    fitted = fit(wants, offers, experts)
    spare = [spare_gb(meta) for meta in metas]
    return {
        "pledges": [_plain(offer.pledge) for offer in offers],
        "phone": [offer.phone and i > 0 for i, offer in enumerate(offers)],
        "kv": kv,
        "bindBytes": binding,
        "wantAfterBinding": wanted,
        "ctx": {
            "ctx": opened.positions,
            "want": opened.wanted,
            "fits": opened.fits,
            "fellBack": opened.fell_back,
        },
        "layerBytes": _plain(wants.layer_bytes),
        "hostBytes": wants.host_bytes,
        "fit": _fit(fitted, say_no=True),
        **{mode.value: _mode(given, wants, offers, mode, experts) for mode in SplitMode},
        "shortBy": 0 if fitted.fits else _plain(shortage(fitted.raises, fitted.short, spare).bytes),
        "spareGB": spare,
        "note": True,
    }


def _mode(
    given: dict[str, Any], wants: Need, offers: list[Offer], mode: SplitMode, experts: ExpertSizes | None
) -> dict[str, Any]:
    dealt = deal(wants, offers, mode, experts, phone_layers=given["phoneLayers"])
    return {"fits": dealt.fits, **_deal(dealt)}
