"""The room's style and settings in the words of the wire, and back. Words we do not know change nothing."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TypeVar

from app.core.settings import MOST_CHECKPOINTS
from app.prompt.chat import Style
from app.room import messages as m
from app.room.planner import SplitMode
from app.room.precision import Precision
from app.room.settings import RoomSettings, Visibility

Word = TypeVar("Word", bound=Enum)


def known_word(word: str, usual: Word) -> Word:
    """The member of ``usual``'s kind with that value, else ``usual``."""
    return next((member for member in type(usual) if member.value == word), usual)


def style_words(style: Style) -> m.StyleWords:
    return m.StyleWords(style.persona.value, style.wording.value, style.thinking, style.length.value)


def read_style(words: m.StyleWords, usual: Style | None = None) -> Style:
    usual = usual or Style()
    return Style(
        persona=known_word(words.persona, usual.persona),
        wording=known_word(words.sampling, usual.wording),
        length=known_word(words.length, usual.length),
        thinking=words.thinking,
    )


def style_message(style: Style) -> m.StyleIs:
    """The room's style as the protocol tells it."""
    words = style_words(style)
    return m.StyleIs(words.persona, words.sampling, words.thinking, words.length)


def with_told(settings: RoomSettings, message: m.VisibilityIs | m.StyleIs) -> RoomSettings:
    """The settings after the protocol's own two messages about them."""
    if isinstance(message, m.VisibilityIs):
        return replace(settings, visibility=known_word(message.mode, settings.visibility))
    return replace(settings, style=read_style(message.words, settings.style))


def rules(settings: RoomSettings) -> m.RulesAre:
    """All settings a model host needs."""
    return m.RulesAre(
        visibility=settings.visibility.value,
        style=style_words(settings.style),
        split=settings.split.value,
        redeal=settings.auto_redeal,
        kv=settings.kv,
        hidden=settings.precision.value,
        checkpoints=settings.checkpoints,
        disk=settings.checkpoints_on_disk,
        noapi=not settings.api_clients,
    )


def read_rules(message: m.RulesAre, usual: RoomSettings | None = None) -> RoomSettings:
    usual = usual or RoomSettings()
    return replace(
        usual,
        visibility=known_word(message.visibility, Visibility.EVERYONE),
        style=read_style(message.style),
        split=known_word(message.split, SplitMode.SPEED),
        auto_redeal=message.redeal,
        kv="q8" if message.kv == "q8" else "f16",
        precision=known_word(message.hidden, Precision.HALF),
        checkpoints=min(message.checkpoints, MOST_CHECKPOINTS),
        checkpoints_on_disk=message.disk,
        api_clients=not message.noapi,
    )
