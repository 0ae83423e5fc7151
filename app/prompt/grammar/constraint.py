"""The entry: what an ask lets the model write, as a matcher (spec: A-060, A-062, A-063, A-070)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llguidance import LLMatcher

from app.core.errors import PromptError
from app.prompt.ask import Ask, Choice, Form, Json, Tool
from app.prompt.grammar import keywords as kw
from app.prompt.grammar.answer import Tags, Wanted, answer_grammar
from app.prompt.grammar.budget import Steps, refuse
from app.prompt.grammar.compiling import blame, prepared
from app.prompt.grammar.matcher import Matcher
from app.prompt.grammar.style import CallStyle, ThinkState
from app.prompt.grammar.vocabulary import Vocabulary
from app.prompt.limits import MOST_TOOLS, TOOL_NAME

_ANY_OBJECT: Json = {"type": "object"}


def constraint(words: Vocabulary, ask: Ask, style: CallStyle, think: ThinkState) -> Matcher | None:
    """The matcher at the answer's beginning; None where the answer is free: no tool in play and no format.

    A free answer may hold a tool tag, which then is only text. The first use of a list of tools compiles for
    some tens of ms, so call it on a thread. Raises PromptError naming the tool and the word of its schema that
    an answer cannot be held to.
    """
    if not ask.form.format and (not ask.tools or ask.form.choice is Choice.NONE):
        return None
    found = words.compiled.get(_key(ask, style, think), lambda: _compiled(words, ask, style, think))
    return Matcher(words.size, words.stops, found)


def _compiled(words: Vocabulary, ask: Ask, style: CallStyle, think: ThinkState) -> LLMatcher:
    wanted = _wanted(ask)
    grammar = answer_grammar(Tags(words.tags), style, think, wanted)
    compiled = LLMatcher(words.library, grammar, log_level=0)
    if compiled.is_error():
        for schema in [schema for _, schema in wanted.calls] + ([wanted.value] if wanted.value else []):
            blame(schema)
        raise PromptError("The tools and the format are too complex together.", "Offer fewer or simpler tools.")
    return compiled


def _key(ask: Ask, style: CallStyle, think: ThinkState) -> str:
    tools = [[tool.name, tool.parameters] for tool in ask.tools]
    form = ask.form
    shape = form.format.schema if form.format else 0
    asked = [form.choice.value, form.named, form.allowed, form.parallel, form.most_calls, shape]
    try:
        return json.dumps([style.value, think.value, asked, tools])
    except (RecursionError, ValueError, TypeError) as error:
        raise PromptError("A tool's schema is no JSON or is nested too deep.", "Change the schema.") from error


def _wanted(ask: Ask) -> Wanted:
    tools, steps = _in_play(ask.tools, ask.form), Steps()
    calls = [(tool.name, prepared(_of_object(tool), f'The tool "{tool.name}"', steps)) for tool in tools]
    value = None
    if ask.form.format:
        schema = ask.form.format.schema
        value = prepared(_ANY_OBJECT if schema is None else schema, "The response format", steps)
    if sum(schema.nodes for _, schema in calls) + (value.nodes if value else 0) > kw.MOST_NODES:
        refuse("The tools and the format", f"have more than {kw.MOST_NODES} parts together")
    return Wanted(calls, value, ask.form)


def _of_object(tool: Tool) -> Json:
    """Arguments are always an object, whether the schema says so or not."""
    types = tool.parameters.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        refuse(f'The tool "{tool.name}"', 'has parameters whose "type" is not object')
    return {**tool.parameters, "type": "object"}


def _in_play(tools: Sequence[Tool], form: Form) -> list[Tool]:
    """The tools this answer may call. Raises PromptError for names the limits or the choice do not allow."""
    names = [tool.name for tool in tools]
    if len(tools) > MOST_TOOLS or len(set(names)) < len(names):
        raise PromptError(f"There are more than {MOST_TOOLS} tools, or two of one name.", "Offer each once.")
    wrong = [name for name in names if not TOOL_NAME.fullmatch(name)]
    if wrong:
        raise PromptError(f"A tool's name is not allowed: {wrong[0][:128]!r}.", "Use letters, digits and _ . : -")
    chosen = form.chosen(names)
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise PromptError(f'The tool "{unknown[0][:128]}" is chosen but not offered.', "Name one of the tools.")
    found = [tool for tool in tools if tool.name in chosen]
    if form.choice is Choice.REQUIRED and not found:
        raise PromptError("A call is required but no tool may be called.", "Offer a tool.")
    return found
