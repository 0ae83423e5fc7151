"""Prompt-lookup operations."""

from __future__ import annotations

from typing import Any

from app.engine.lookup import Lookup, LookupIndex
from app.room.drafts import BOLD, CAUTIOUS, chain_verifies
from app.room.meta import read_meta
from tests.protocol_ops import op

OPTIONS = {"window": "window", "maxN": "longest", "minN": "shortest"}


@op("lookup")
def _lookup(given: dict[str, Any]) -> list[int]:
    options = {OPTIONS[name]: value for name, value in given.get("options", {}).items()}
    return LookupIndex(given["ctx"], Lookup(**options)).drafts(given["k"])


@op("lookup_generated")
def _lookup_generated(given: dict[str, Any]) -> list[int]:
    context = [1000 + i for i in range(17_000)]
    context[given["at"] : given["at"] + 2] = context[-2:] = [1, 2]
    return LookupIndex(context).drafts(given["k"])


@op("dense_lookup")
def _dense_lookup(given: dict[str, Any]) -> dict[str, Any]:
    allowed = chain_verifies(read_meta(meta) for meta in given["chainMetas"])
    most = min(given["kMax"], BOLD if given["full"] else CAUTIOUS)
    drafts = LookupIndex(given["ctx"]).drafts(most)
    return {"chainAllows": allowed, "drafts": drafts if allowed else []}
