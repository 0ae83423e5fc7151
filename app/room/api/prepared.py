"""An ask made ready for a model, off the event loop: what it takes, what form it has, what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import PromptError
from app.engine.ops.mask import words_of
from app.prompt.ask import Ask, Choice
from app.prompt.ask_prompt import AskPrompt
from app.prompt.grammar.constraint import constraint
from app.prompt.grammar.style import ThinkState
from app.prompt.grammar.vocabulary import Vocabulary, vocabulary
from app.prompt.known_answers import KnownAnswers
from app.prompt.language import Language
from app.prompt.limits import ANSWER_RESERVE
from app.room.api.steering import AskSteering, ThinkBudget

LONGEST_FORCED_THOUGHT = 4_096
"""An answer that must have a form must also come to it (spec: product A-066)."""


class TooLong(PromptError):
    """The prompt has ``tokens`` of the ``most`` there is room for."""

    def __init__(self, tokens: int, most: int) -> None:
        super().__init__(
            f"The request takes {tokens} tokens, and this room has room for {most}.",
            "Shorten the conversation, or open the model with a longer context.",
        )
        self.tokens, self.most = tokens, most


@dataclass(frozen=True)
class Voice:
    """What a model host answers programs with; made anew for every model that is loaded."""

    language: Language
    vocabulary: Vocabulary
    known: KnownAnswers


def new_voice(language: Language, vocab: int) -> Voice:
    """Takes up to a second, so call it on a thread. ``vocab``: ids of a row of logits."""
    return Voice(language, vocabulary(language.tokenizer, vocab), KnownAnswers())


@dataclass(frozen=True)
class Prepared:
    """An ask's prompt as far as it was known when it was made, and the hand that holds its answer to its form."""

    voice: Voice
    prompt: AskPrompt
    steering: AskSteering


def prepare(voice: Voice, ask: Ask, context: int) -> Prepared:
    """Takes some ms, for long conversations a tenth of a second, so call it on a thread.

    Raises PromptError for what no answer can come of: TooLong, or a form that cannot be kept.
    """
    prompt = voice.language.ask_prompt(ask, voice.known)
    most = context - ANSWER_RESERVE
    if len(prompt.ids) > most:
        raise TooLong(len(prompt.ids), most)
    return Prepared(voice, prompt, _steering(voice, ask, opened=prompt.opened))


def _steering(voice: Voice, ask: Ask, *, opened: bool) -> AskSteering:
    """``opened``: the prompt ends inside a think block."""
    think = ThinkState.OPEN if opened else (ThinkState.MAY if ask.thinking.on else ThinkState.NEVER)
    grammar = constraint(voice.vocabulary, ask, voice.language.profile.style, think)
    return AskSteering(grammar, ask.bias, _budget(voice, ask, opened=opened), words_of(voice.vocabulary.size))


def _budget(voice: Voice, ask: Ask, *, opened: bool) -> ThinkBudget | None:
    end = voice.language.tokenizer.special("</think>")
    if end is None or not (opened or ask.thinking.on):
        return None
    tokens = ask.thinking.budget or (min(ask.most_tokens // 2, LONGEST_FORCED_THOUGHT) if _forces(ask) else None)
    if not tokens:
        return None
    tokenizer = voice.language.tokenizer
    closing = (*tokenizer.encode("\n"), end, *tokenizer.encode("\n\n"))
    start, blank = tokenizer.special("<think>"), lambda token: not tokenizer.piece(token).strip()
    return ThinkBudget(tokens, closing, start, end, blank, thinking=opened)


def _forces(ask: Ask) -> bool:
    return ask.form.choice is Choice.REQUIRED or ask.form.format is not None
