"""A mistake on the command line in one sentence, with the nearest word there is (spec: product T-001)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

_NO_OPTION = re.compile(r"No such option:? '?(-[^\s'.]*)")
_NO_VALUE = re.compile(r"Option '?(-[^\s'.]*)'? requires")
_NO_ARGUMENT = re.compile(r"Missing argument '?\[?([A-Z-]+)")
_EXTRA = re.compile(r"unexpected extra argument(?:s|\(s\))? \((.*)\)")
_PREFIX = re.compile(r"^Invalid value(?: for [^:]*)?: ")

_MISSING = {
    "CODE-OR-LINK": 'needs a room: {prog} 4TK-G9P, or {prog} "LINK" with the invite link in quotes',
    "MODEL": "needs a model: {prog} 1.7b; pooled list shows them",
}
_SYNONYMS = {"models": "list", "download": "pull", "ls": "list", "remove": "rm", "delete": "rm", "run": "chat"}


def unknown_verb(verb: str, verbs: Collection[str]) -> str:
    near = _SYNONYMS.get(verb) or _nearest(verb, verbs)
    shown = verb[:40]
    if near:
        return f"pooled: there is no {shown}, did you mean {near}?"
    return f"pooled: there is no {shown}, the verbs are {', '.join(verbs)}."


def mistake(prog: str, message: str, flags: Collection[str]) -> str:
    """``message`` is the parser's own. ``prog``: the words up to the verb."""
    message = " ".join(message.split())
    if found := _NO_OPTION.search(message):
        near = _nearest(found[1].split("=")[0], flags)
        return f"{prog}: there is no {found[1]}, " + (f"did you mean {near}?" if near else f"{prog} --help lists all")
    if found := _NO_VALUE.search(message):
        return f"{prog}: {found[1]} needs a value; {prog} --help shows how"
    if found := _NO_ARGUMENT.search(message):
        return f"{prog} {_MISSING.get(found[1], f'needs {found[1]}').format(prog=prog)}"
    if found := _EXTRA.search(message):
        return f"{prog}: {found[1]} is too much; a link or name with spaces or & belongs in quotes"
    return f"{prog}: {_PREFIX.sub('', message)}"


def _nearest(word: str, known: Collection[str]) -> str:
    return next(iter(difflib.get_close_matches(word.lower(), known, 1, 0.5)), "")
