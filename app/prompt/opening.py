"""How a template begins an answer, so that old answers can keep the beginning they were given (rooms §18.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.prompt.slots import Slots

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
OWN_BLOCK = re.compile(r"<think>\s*(?:</think>\s*)?")


@dataclass(frozen=True)
class Opening:
    """``head`` names who speaks. ``quiet`` and ``thinking`` are what the prompt puts behind it with thinking
    off, often an empty closed block, and with thinking on, often the opening tag."""

    head: str = ""
    quiet: str = ""
    thinking: str = ""

    def of_unthought(self, slots: Iterable[int]) -> dict[int, str]:
        """The beginning of answers without reasoning; nothing where the prompt cannot but open a block."""
        return {} if left_open(self.quiet) else dict.fromkeys(slots, self.quiet)


def opening_of(quiet: str, thinking: str) -> Opening:
    """From the whole beginnings that a template writes with thinking off and on."""
    head = min((text.partition(THINK_OPEN)[0] for text in (quiet, thinking)), key=len)
    if not (quiet.startswith(head) and thinking.startswith(head)):
        return Opening()
    return Opening(head, quiet[len(head) :], thinking[len(head) :])


def left_open(text: str) -> bool:
    """Whether a text ends inside a think block."""
    return text.rfind(THINK_OPEN) > text.rfind(THINK_CLOSE)


def with_openings(rendered: str, slots: Slots, head: str, answers: Mapping[int, str]) -> str:
    """Puts behind the head of each old answer what its prompt put there. ``answers``: this text by the origins
    of an answer's slots; the first that was placed counts. A block that the template wrote is replaced."""
    pieces: list[str] = []
    at, done = 0, set[int]()
    for match in slots.pattern.finditer(rendered):
        before = rendered[at : match.start()]
        origin = slots.all[int(match[1])].origin
        begins = head and origin in answers and head in before and origin not in done
        pieces += [_opened(before, head, answers[origin]) if begins else before, match[0]]
        done.add(origin)
        at = match.end()
    return "".join([*pieces, rendered[at:]])


def _opened(before: str, head: str, tail: str) -> str:
    place = before.rfind(head) + len(head)
    return before[:place] + tail + OWN_BLOCK.sub("", before[place:], count=1)
