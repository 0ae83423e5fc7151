"""The command line read into a wish. A mistake is answered with one line and the nearest word."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn, cast

from app.cli.mistakes import mistake, unknown_verb
from app.cli.options import Options, ShowWindow, Wish

USAGE_ERROR = 2
COMPLETING = "_POOLED_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
VERBS = ("host", "join", "chat", "serve", "pull", "list", "rm")
OTHER_NAMES = {"download": "pull", "ls": "list"}

OVERVIEW = """\
Pooled: several devices become one room and run a language model together.

  pooled                      the window; without a screen, a menu in this terminal
  pooled host                 open a room here
  pooled join "LINK"          lend this device to a room, by its link (in quotes) or its code
  pooled chat 4TK-G9P         talk to a room
  pooled serve 4TK-G9P        use a room from other programs
  pooled pull 1.7b            download a model; pooled list and pooled rm keep house
  pooled completion bash      words for the Tab key, also for zsh and fish

  pooled VERB --help          all flags of a verb
  pooled --version            this version
"""


def read_arguments(arguments: Sequence[str]) -> Wish:
    """What the command line asks for. Exits with 2 after one line when it cannot be read, with 0 after help."""
    if COMPLETING in os.environ:
        _parse([])
    if not arguments:
        return ShowWindow()
    verb, rest = OTHER_NAMES.get(arguments[0], arguments[0]), arguments[1:]
    if verb in ("-h", "--help", "help"):
        _say(OVERVIEW)
    if verb in ("-V", "--version", "version"):
        _say(f"pooled {program_version()}\n")
    if "://" in verb:
        return ShowWindow(verb)
    if verb == "completion":
        _completion(rest)
    if verb in VERBS or verb in ("--install-completion", "--show-completion"):
        return _parse([verb, *(word for each in rest for word in _apart(each))])
    return wrong(unknown_verb(verb, (*VERBS, "completion")))


def program_version() -> str:
    try:
        return version("pooled")
    except PackageNotFoundError:
        return "unknown"


def wrong(sentence: str) -> NoReturn:
    sys.stderr.write(f"{sentence}\n")
    raise SystemExit(USAGE_ERROR)


def _say(text: str) -> NoReturn:
    sys.stdout.write(text)
    raise SystemExit(0)


def _parse(arguments: list[str]) -> Options:
    """The parser is loaded only when there is something to parse."""
    import typer

    from app.cli.verbs import verbs

    run = cast("Callable[..., object]", verbs)
    try:
        read = run(arguments, prog_name="pooled", standalone_mode=False)
    except typer.TyperException as error:
        verb = f"pooled {arguments[0]}" if arguments else "pooled"
        wrong(mistake(verb, error.format_message(), _flags(error)))
    except typer.Abort:
        raise SystemExit(USAGE_ERROR) from None
    if isinstance(read, int):
        raise SystemExit(read)
    return cast("Options", read)


def _apart(word: str) -> tuple[str, ...]:
    """``--serve=9000`` is ``--serve --port 9000``: a flag of the parser either has a value or none."""
    return ("--serve", "--port", word.removeprefix("--serve=")) if word.startswith("--serve=") else (word,)


def _flags(error: Exception) -> list[str]:
    """All flags of the verb that was mistaken."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    return [flag for parameter in getattr(command, "params", []) for flag in parameter.opts if flag.startswith("-")]


def _completion(arguments: Sequence[str]) -> NoReturn:
    """Prints the shell's script; which shell is told by the environment where it is not said."""
    shell = arguments[0] if arguments else os.path.basename(os.environ.get("SHELL", "bash"))
    if shell not in SHELLS or len(arguments) > 1:
        wrong(f"pooled completion: there is no {shell[:40]}, the shells are {', '.join(SHELLS)}.")
    os.environ[COMPLETING] = f"source_{shell}"
    _parse([])
    raise SystemExit(0)
