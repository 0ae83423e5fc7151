"""Invite links in every form they are pasted."""

from __future__ import annotations

import pytest

from app.core.errors import RoomError
from app.room.invite import Invite, parse_invite

KEY = "ICEiIyQlJicoKSorLC0uLw"
FINGERPRINT = "ab" * 32


@pytest.mark.parametrize(
    ("text", "invite"),
    [
        ("4tk-g9p", Invite("4TKG9P")),
        ("https://pooled.example/r/4TKG9P", Invite("4TKG9P", origin="https://pooled.example")),
        (f"https://pooled.example/?code=4TKG9P#k={KEY}", Invite("4TKG9P", KEY, "https://pooled.example")),
        (
            f"http://10.0.0.2:7420/r/4TKG9P?signal=10.0.0.2:7420#k={KEY}&fp={FINGERPRINT}",
            Invite("4TKG9P", KEY, "http://10.0.0.2:7420", "10.0.0.2:7420", FINGERPRINT),
        ),
        (f"pooled://r/4TKG9P#k={KEY}", Invite("4TKG9P", KEY)),
        (f" pooled.example/r/4TKG9P#k={KEY} ", Invite("4TKG9P", KEY)),
    ],
)
def test_reads(text: str, invite: Invite) -> None:
    assert parse_invite(text) == invite


@pytest.mark.parametrize("text", ["", "hello", "https://pooled.example/", "http://[", "pooled://x/4TKG9P", "ABCDEI"])
def test_refuses_other_text(text: str) -> None:
    with pytest.raises(RoomError):
        parse_invite(text)


def test_links_read_back() -> None:
    invite = Invite("4TKG9P", KEY, "http://10.0.0.2:7420", "ws://10.0.0.2:7420/x", FINGERPRINT)
    assert parse_invite(invite.web_link()) == invite
    assert parse_invite(invite.app_link()) == Invite("4TKG9P", KEY, "", invite.signal, FINGERPRINT)


def test_the_key_is_in_the_fragment_only() -> None:
    before, _, fragment = Invite("4TKG9P", KEY, "http://10.0.0.2:7420").web_link().partition("#")
    assert KEY not in before
    assert KEY in fragment
