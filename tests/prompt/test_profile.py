"""What a template says about its model."""

from __future__ import annotations

import pytest

from app.core.errors import PromptError
from app.prompt.ask import Effort, Thinking
from app.prompt.grammar.style import CallStyle
from app.prompt.language import Language
from app.prompt.profile import Profile
from tests.prompt.chunks import CHAT_ONLY, chat_ml
from tests.prompt.templates import LEVELS, PLAIN, XML, real, written_in

ALWAYS = "{{ messages[0].content }}{% if add_generation_prompt %}A:<think>\n{% endif %}"
ONE_LEVEL = "{% set level = reasoning_effort | default('medium') %}{{ level ~ messages[0].content }}"
PROFILES: dict[str, tuple[Language, Profile]] = {
    "chatml": (chat_ml(), Profile(tools=True, style=CallStyle.JSON, thinking=True)),
    "chatml, no tags": (chat_ml(CHAT_ONLY), Profile(tools=False, style=CallStyle.JSON)),
    "xml": (written_in(XML), Profile(tools=True, style=CallStyle.XML, thinking=True, opened=True)),
    "plain": (written_in(PLAIN), Profile(tools=False, style=CallStyle.JSON)),
    "thinks always": (
        written_in(ALWAYS),
        Profile(tools=False, style=CallStyle.JSON, thinking=True, opened=True),
    ),
    "levels": (
        written_in(LEVELS),
        Profile(tools=False, style=CallStyle.JSON, effort=True, levels=frozenset({"low", "xhigh"})),
    ),
    "broken": (written_in("{% for %}"), Profile(tools=False, style=CallStyle.JSON)),
}


@pytest.mark.parametrize("name", PROFILES)
def test_profiles(name: str) -> None:
    language, profile = PROFILES[name]
    assert language.profile == profile


def test_the_profile_of_a_whole_model() -> None:
    assert real().profile == Profile(tools=True, style=CallStyle.XML, thinking=True, opened=True)


def test_a_model_without_a_chat_format_has_none() -> None:
    with pytest.raises(PromptError, match="no chat format"):
        _ = chat_ml({}).profile


@pytest.mark.parametrize(
    ("source", "effort", "told"),
    [
        (LEVELS, Effort.MEDIUM, None),
        (LEVELS, Effort.HIGH, "xhigh"),
        (ONE_LEVEL, Effort.MEDIUM, "medium"),
        (ONE_LEVEL, Effort.HIGH, "high"),
        (PLAIN, Effort.HIGH, None),
    ],
)
def test_the_level_a_template_is_told(source: str, effort: Effort, told: str | None) -> None:
    profile = written_in(source).profile
    assert profile.effort_of(Thinking(on=True, effort=effort)) == told
    assert profile.effort_of(Thinking(on=False, effort=effort)) is None
