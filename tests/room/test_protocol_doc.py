"""The protocol's page names every message that exists, and says of ours that they are."""

from __future__ import annotations

from pathlib import Path

from app.room import messages as m

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text("utf-8")
OURS = ("ai-silent", "ai-rules", "ai-past", "ai-relay", "ai-heir", "ai-estate", "ai-wdoor")


def test_every_message_is_on_the_page() -> None:
    missing = [tag for tag in m.KINDS if f"`{tag}`" not in PAGE]
    assert not missing


def test_ours_are_marked() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    for tag in OURS:
        row = next(line for line in rows if f"`{tag}" in line)
        assert "**ours**" in row
