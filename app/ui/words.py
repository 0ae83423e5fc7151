"""Figures as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence

MINUTE = 60
KILO = 1024


def gb(amount: float) -> str:
    """One decimal below 10 GB, none above, MB below one."""
    if 0 < amount < 0.95:
        return f"{amount * 1000:.0f} MB" if amount * 10 % 1 else f"{amount:.1f} GB"
    return f"{trimmed(amount)} GB"


def trimmed(amount: float) -> str:
    text = f"{amount:.1f}" if amount < 10 or amount % 1 else f"{amount:.0f}"
    return text.removesuffix(".0")


def size(count: float) -> str:
    """Bytes as MB or GB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def positions(count: int) -> str:
    """A context length: 32768 as 32K."""
    return f"{count // KILO}K" if count >= KILO and count % KILO == 0 else f"{count}"


def tokens(count: int) -> str:
    """5900 as 5.9K."""
    return f"{count / 1000:.1f}K" if count >= 1000 else str(count)


def ms(amount: float) -> str:
    return f"{amount:.1f} ms" if amount < 100 else f"{amount:.0f} ms"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def duration(seconds: float) -> str:
    """How long something still takes, in words that do not jump."""
    if seconds < MINUTE - 15:
        return "under a minute left"
    if seconds < 1.5 * MINUTE:
        return "about a minute left"
    return f"about {round(seconds / MINUTE)} min left"


def names(several: Sequence[str]) -> str:
    """ "otter, heron and finch"."""
    if len(several) < 2:
        return "".join(several)
    return f"{', '.join(several[:-1])} and {several[-1]}"


def layers(first_last: tuple[int, int]) -> str:
    first, last = first_last
    return f"layer {first}" if first == last else f"layers {first}–{last}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
