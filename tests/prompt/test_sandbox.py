"""Templates of hostile files end, whatever they try; ordinary ones work."""

import pytest

from app.core.errors import PromptError
from app.prompt.sandbox import render_bounded

LONG = "x" * 200_000
GROW = "{% set ns = namespace(t='x') %}{% for i in range(90) %}{% set ns.t = EXPRESSION %}{% endfor %}"
TWICE = "{{ m(n - 1) }}{{ m(n - 1) }}"
HOSTILE = {
    "nested loops": "{% for a in text %}{% for b in text %}{% for c in text %}{% endfor %}{% endfor %}{% endfor %}",
    "doubling by tilde": GROW.replace("EXPRESSION", "ns.t ~ ns.t"),
    "doubling by plus": GROW.replace("EXPRESSION", "ns.t + ns.t"),
    "a macro that calls itself twice": "{% macro m(n) %}{% if n %}" + TWICE + "{% endif %}{% endmacro %}{{ m(60) }}",
    "padding by format": "{{ '{:>9999999999}'.format('x') }}",
    "padding by ljust": "{{ 'x'.ljust(9999999999) }}",
    "a power": "{{ 9 ** 9999999 }}",
    "a product of text": "{{ 'x' * 999999999 }}",
    "replace that multiplies": "{{ text | replace('x', text) }}",
    "the method replace": "{{ text.replace('x', text) }}",
    "join that multiplies": "{{ text | join(text) }}",
    "a long range": "{% for i in range(999999999) %}{% endfor %}",
    "python underneath": "{{ ''.__class__.__mro__ }}",
    "an endless recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_hostile_templates_are_refused(source: str) -> None:
    with pytest.raises(PromptError):
        render_bounded(source, {"text": LONG})


def test_ordinary_templates_work() -> None:
    source = (
        "{% for m in messages %}{{ m.role ~ ': ' ~ (m.text | replace('a', 'b')) + '\\n' }}"
        "{% if loop.last %}{{ ['x', 'y'] | join(', ') }}{{ '-'.join(['p', 'q']) }}{% endif %}{% endfor %}"
        "{% for k, v in {'one': 1}.items() %}{{ k }}={{ v }}{% endfor %}{{ missing }}"
    )
    messages = [{"role": "user", "text": "banana"}, {"role": "assistant", "text": "ok"}]
    text = render_bounded(source, {"messages": messages})
    assert text == "user: bbnbnb\nassistant: ok\nx, yp-qone=1"


def test_a_long_conversation_is_within_the_budget() -> None:
    messages = [{"role": "user", "text": "word " * 300}] * 1000
    text = render_bounded("{% for m in messages %}<{{ m.role }}>{{ m.text }}{% endfor %}", {"messages": messages})
    assert text.count("<user>") == 1000
