"""A rendered template turned into token ids: what it wrote may be special, what its slots hold never is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.prompt.slots import Slot, Slots
from app.prompt.tokenizer import Tokenizer

SPECIAL_LOOKING = re.compile(r"<[|｜].{1,60}?[|｜]>|</?[A-Za-z_][\w:-]{0,40}>|\[/?[A-Z_]{1,40}\]")


@dataclass
class Assembled:
    """Ids of a rendering. ``begins`` and ``ends``: by the origin of a slot, the places in ``ids`` between which
    it was placed; neighbouring text shares its tokens with it, so both are places of whole runs of text."""

    ids: list[int] = field(default_factory=list[int])
    begins: dict[int, int] = field(default_factory=dict[int, int])
    ends: dict[int, int] = field(default_factory=dict[int, int])


def assemble(tokenizer: Tokenizer, slots: Slots, rendered: str) -> Assembled:
    """Neighbouring plain text is encoded in one piece, as the model learned it."""
    done = Assembled()
    run: list[str] = []
    origins: list[int] = []
    for part in [*_parts(tokenizer, slots.split(rendered)), ()]:
        if isinstance(part, str):
            run.append(part)
        elif isinstance(part, Slot) and isinstance(part.value, str):
            run.append(part.value)
            origins.append(part.origin)
        else:
            _flush(tokenizer, done, run, origins)
            _place(done, part)
    return done


def _flush(tokenizer: Tokenizer, done: Assembled, run: list[str], origins: list[int]) -> None:
    text = "".join(run)
    for origin in origins:
        done.begins.setdefault(origin, len(done.ids))
    done.ids += tokenizer.encode(text) if text else []
    done.ends |= dict.fromkeys(origins, len(done.ids))
    run.clear()
    origins.clear()


def _place(done: Assembled, part: Slot | int | tuple[()]) -> None:
    if isinstance(part, Slot) and isinstance(part.value, tuple):
        done.begins.setdefault(part.origin, len(done.ids))
        done.ids += part.value
        done.ends[part.origin] = len(done.ids)
    elif isinstance(part, int):
        done.ids.append(part)


def _parts(tokenizer: Tokenizer, pieces: Iterable[str | Slot]) -> Iterator[str | int | Slot]:
    for piece in pieces:
        if isinstance(piece, Slot):
            yield piece
        else:
            yield from _format(tokenizer, piece)


def _format(tokenizer: Tokenizer, text: str) -> Iterator[str | int]:
    """What the template itself wrote: its special tokens become ids."""
    at = 0
    for match in SPECIAL_LOOKING.finditer(text):
        token = tokenizer.special(match[0])
        if token is not None:
            yield text[at : match.start()]
            yield token
            at = match.end()
    yield text[at:]
