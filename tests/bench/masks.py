"""What a mask costs at a vocabulary of 248,000 ids, by the place in an answer: ``python -m tests.bench.masks``.

Every answer is written token by token as the model would write it. "first" is what a mask costs in a grammar just
compiled, "again" in the next answer of the same tools.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from app.engine.gguf.file import GgufFile
from app.engine.tokenizer import GgufTokenizer
from app.prompt.ask import Ask, Form, Json, JsonFormat, Tool, UserMessage
from app.prompt.grammar.constraint import constraint
from app.prompt.grammar.style import CallStyle, ThinkState
from app.prompt.grammar.vocabulary import Vocabulary, vocabulary
from tests.shared import shared_root

GOAL_MS = 0.3
TOOLS = 30
TEXT = "The quick brown fox jumps over the lazy dog; then it says: “nothing to see here”. " * 6
CODE = "def f(x: int) -> str:\n    return {'a': [x, \"y\"]}['a'][1]  # <done>\n" * 6
LEAF: Json = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "number"}},
    "required": ["name"],
}


def nested(levels: int) -> Json:
    inner = LEAF if levels == 0 else nested(levels - 1)
    return {"type": "object", "properties": {"items": {"type": "array", "items": inner}}, "required": ["items"]}


EDIT: Json = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "text": {"type": "string"},
        "mode": {"type": "string", "enum": ["insert", "replace", "replace all", "delete"]},
        "lines": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 99_999}},
        "word": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$", "maxLength": 60},
    },
    "required": ["path"],
    "additionalProperties": False,
}
AGENT = tuple(Tool(f"tool_{number}", "", EDIT) for number in range(TOOLS))
FORMAT = Form(format=JsonFormat(nested(6)))
LINES = "[" + ", ".join(str(number * 37) for number in range(1, 60)) + "]"
QUOTED = TEXT.replace('"', "'")
HEAD = '<tool_call>\n{"name": "tool_7", "arguments": {"path": "'
XML_HEAD = "<tool_call>\n<function=tool_7>\n<parameter=path>\n"
NEXT = "\n</parameter>\n<parameter="
DEEP = '{"items": [' * 7 + ", ".join('{"name": "' + word + '", "size": 3.25}' for word in TEXT.split()) + "]}" * 7
PLACES: dict[str, tuple[CallStyle, Form, str, str]] = {
    "free text": (CallStyle.JSON, Form(), "", TEXT),
    "JSON string": (CallStyle.JSON, Form(), HEAD, QUOTED),
    "JSON enum": (CallStyle.JSON, Form(), HEAD + 'a", "mode": ', '"replace all"'),
    "JSON numbers": (CallStyle.JSON, Form(), HEAD + 'a", "lines": ', LINES),
    "JSON pattern": (CallStyle.JSON, Form(), HEAD + 'a", "word": "', "some-words-in-a-row-that-are-long"),
    "JSON whole call": (
        CallStyle.JSON,
        Form(),
        "",
        HEAD + 'a/b.py", "mode": "insert", "lines": [1, 20]}}\n</tool_call>',
    ),
    "XML raw text": (CallStyle.XML, Form(), XML_HEAD + f"a{NEXT}text>\n", CODE),
    "XML enum": (CallStyle.XML, Form(), XML_HEAD + f"a{NEXT}mode>\n", "replace all\n</parameter>\n"),
    "XML pattern": (CallStyle.XML, Form(), XML_HEAD + f"a{NEXT}word>\n", "some-words-in-a-row-that-are-long"),
    "XML numbers": (CallStyle.XML, Form(), XML_HEAD + f"a{NEXT}lines>\n", LINES),
    "deep value": (CallStyle.JSON, FORMAT, "", DEEP),
}


def times_ms(words: Vocabulary, tokenizer: GgufTokenizer, place: str) -> Iterator[float]:
    """Ms of each mask and the step after it, along the answer."""
    style, form, before, written = PLACES[place]
    ask = Ask((UserMessage("hi"),), tools=() if form.format else AGENT, form=form)
    found = constraint(words, ask, style, ThinkState.NEVER)
    assert found is not None
    for token in tokenizer.encode_with_specials(before):
        found.accept(token)
    for token in tokenizer.encode_with_specials(written):
        began = time.perf_counter()
        found.mask()
        found.accept(token)
        yield (time.perf_counter() - began) * 1_000


def main() -> int:
    tokenizer = GgufTokenizer(GgufFile.open(shared_root() / "models/vocab-qwen35.gguf").metadata)
    began = time.perf_counter()
    words = vocabulary(tokenizer, tokenizer.size)
    print(f"vocabulary of {tokenizer.size} ids in {time.perf_counter() - began:.2f} s")
    for style in CallStyle:
        began = time.perf_counter()
        constraint(words, Ask((UserMessage("hi"),), tools=AGENT), style, ThinkState.NEVER)
        print(f"{TOOLS} tools in style {style.value} compiled in {(time.perf_counter() - began) * 1_000:.0f} ms")
    print(f"{'ms a token':18} {'tokens':>6} {'first: median':>14} {'p99':>6} {'again: median':>14} {'p99':>6}")
    slowest = 0.0
    for place in PLACES:
        first, again = (list(times_ms(words, tokenizer, place)) for _ in range(2))
        shown = [f"{np.median(each):14.3f} {np.percentile(each, 99):6.3f}" for each in (first, again)]
        print(f"{place:18} {len(first):6} {shown[0]} {shown[1]}", flush=True)
        slowest = max(slowest, float(np.median(first)))
    print(f"slowest median {slowest:.3f} ms, goal {GOAL_MS} ms")
    return 1 if slowest > GOAL_MS else 0


if __name__ == "__main__":
    sys.exit(main())
