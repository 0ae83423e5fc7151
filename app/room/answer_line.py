"""The line under an answer (spec: rooms §14.10)."""

from __future__ import annotations

from dataclasses import dataclass

from app.room.drafter import Acceptance


@dataclass(frozen=True)
class AnswerFigures:
    """``reused`` prompt tokens were in the caches already; ``forgotten`` oldest exchanges did not fit."""

    tokens: int
    per_second: float
    devices: int
    reused: int
    drafts: Acceptance
    ending: str
    forgotten: int


def answer_line(figures: AnswerFigures) -> str:
    """ "120 tok · 14.2 tok/s · 2 devices · 71% drafts accepted · (96 reused)"."""
    share = figures.drafts.share
    parts = [f"{figures.tokens} tok", f"{figures.per_second:.1f} tok/s"]
    parts.append(f"{figures.devices} device" + ("s" if figures.devices > 1 else ""))
    parts += [f"{100 * share:.0f}% drafts accepted"] if share is not None else []
    parts += [f"{figures.drafts.looked_up} by lookup"] if figures.drafts.looked_up else []
    parts += [figures.ending] if figures.ending else []
    parts += [f"{figures.forgotten} oldest exchanges forgotten"] if figures.forgotten else []
    parts += [f"({figures.reused} reused)"] if figures.reused else []
    return " · ".join(parts)
