"""Placeholders carry what was said through a template, or are found out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import PromptError
from app.prompt.assembly import assemble
from app.prompt.sandbox import render_bounded
from app.prompt.slots import Slots, sound
from tests.prompt.chunks import ChunkTokenizer


def through(source: str, text: str) -> str:
    slots = Slots()
    rendered = render_bounded(source, {"x": slots.text(text), "tree": {"k": [slots.whole(text)]}}, slots.in_json)
    return bytes(assemble(ChunkTokenizer(), slots, rendered).ids).decode()


@pytest.mark.parametrize(
    "source",
    [
        "{{ x }}",
        "{{ x ~ '' }}",
        "{{ x | string | safe }}",
        "{{ x.split('</think>')[-1] }}",
        "{{ x | replace('a', 'b') }}",
        "{{ x | lower }}",
        "{{ [x] | join(',') }}",
        "{{ x if x is string and not x.startswith('<tool_response>') else '' }}",
    ],
)
@settings(deadline=None)
@given(st.text())
def test_text_goes_through_unchanged(source: str, text: str) -> None:
    assert through(source, text) == sound(text)


@pytest.mark.parametrize(
    "source", ["{{ tree | tojson }}", "{{ tree | tojson(indent=2) }}", "{{ tree | tojson | safe }}"]
)
@settings(deadline=None)
@given(st.text(min_size=1))
def test_json_that_a_template_dumps_says_the_same(source: str, text: str) -> None:
    assert json.loads(through(source, text)) == {"k": [sound(text)]}


@pytest.mark.parametrize("source", ["{{ x[1:] }}", "{{ x[:-1] }}", "{{ x | list | join(' ') }}", "{{ x | reverse }}"])
def test_a_damaged_placeholder_is_found_out(source: str) -> None:
    with pytest.raises(PromptError, match="changes messages"):
        through(source, "hello")


def test_halves_of_characters_become_replacement_characters() -> None:
    assert through("{{ x }}{{ tree | tojson }}", "a\ud83db") == 'a\ufffdb{"k": ["a\ufffdb"]}'
