"""Prompt-lookup operations."""

from __future__ import annotations

from typing import Any

from app.engine.lookup import lookup_drafts
from app.room.drafts import chain_verifies, dense_drafts
from app.room.meta import read_meta
from tests.protocol_ops import op

OPTIONS = {"window": "window", "maxN": "longest", "minN": "shortest"}


@op("lookup")
def _lookup(given: dict[str, Any]) -> list[int]:
    options = {OPTIONS[name]: value for name, value in given.get("options", {}).items()}
    return lookup_drafts(given["ctx"], given["k"], **options)


@op("lookup_generated")
def _lookup_generated(given: dict[str, Any]) -> list[int]:
    context = [1000 + i for i in range(17_000)]
    context[given["at"] : given["at"] + 2] = context[-2:] = [1, 2]
    return lookup_drafts(context, given["k"])


@op("dense_lookup")
def _dense_lookup(given: dict[str, Any]) -> dict[str, Any]:
    allowed = chain_verifies(read_meta(meta) for meta in given["chainMetas"])
    drafts = dense_drafts(given["ctx"], given["kMax"], last_run_accepted=given["full"])
    return {"chainAllows": allowed, "drafts": drafts if allowed else []}
