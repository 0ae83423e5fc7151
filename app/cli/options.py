"""The terminal's verbs and their flags. A mistake is answered with one line and the nearest word."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import msgspec

USAGE_ERROR = 2
LARGEST_GB = 1024
MOST_DEVICES = 100

OVERVIEW = """\
Pooled: several devices become one room and run a language model together.

  pooled                      the window; without a screen, a room in this terminal
  pooled host                 open a room here
  pooled join "LINK"          join a room by its link (in quotes) or its code
  pooled "LINK"               the same in the window

  pooled VERB --help          all flags of a verb
  pooled --version            this version
"""


@dataclass(frozen=True)
class HostOptions:
    """``wait``: how many devices must be in the room before ``start`` starts the model. ``again``: the last room."""

    name: str = ""
    gb: float | None = None
    signal: tuple[str, ...] = ()
    model: str = ""
    start: bool = False
    wait: int = 1
    auto_allow: bool = False
    again: bool = False
    fetch: bool = True


@dataclass(frozen=True)
class JoinOptions:
    where: str
    name: str = ""
    gb: float | None = None
    signal: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShowWindow:
    """No verb was given. ``link``: an invite that was opened with this program."""

    link: str = ""


Options = HostOptions | JoinOptions
Wish = Options | ShowWindow


class _Parser(argparse.ArgumentParser):
    """One line on a mistake, instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {self._with_nearest(message)}\n")

    def _with_nearest(self, message: str) -> str:
        prefix = "unrecognized arguments: "
        if not message.startswith(prefix):
            return f"{message}; {self.prog} --help shows how"
        unknown = message.removeprefix(prefix).split()[0]
        flags = [flag for action in self._actions for flag in action.option_strings]
        near = difflib.get_close_matches(unknown.split("=")[0], flags, 1, 0.5)
        return f"there is no {unknown}" + (f", did you mean {near[0]}?" if near else f"; {self.prog} --help lists all")


def read_arguments(arguments: Sequence[str]) -> Wish:
    """What the command line asks for. Exits with 2 after one line when it cannot be read, with 0 after help."""
    if not arguments:
        return ShowWindow()
    verb, rest = arguments[0], arguments[1:]
    if verb in ("-h", "--help", "help"):
        _say(OVERVIEW)
    if verb in ("-V", "--version"):
        _say(f"pooled {program_version()}\n")
    if "://" in verb:
        return ShowWindow(verb)
    if verb not in _READERS:
        _unknown(verb)
    return _READERS[verb](rest)


def program_version() -> str:
    try:
        return version("pooled")
    except PackageNotFoundError:
        return "unknown"


def _say(text: str) -> NoReturn:
    sys.stdout.write(text)
    raise SystemExit(0)


def _unknown(verb: str) -> NoReturn:
    near = difflib.get_close_matches(verb, _READERS, 1, 0.5)
    remedy = f"did you mean {near[0]}?" if near else f"the verbs are {' and '.join(_READERS)}."
    sys.stderr.write(f"pooled: there is no {verb}, {remedy}\n")
    raise SystemExit(USAGE_ERROR)


def _host(arguments: Sequence[str]) -> HostOptions:
    parser = _Parser("pooled host", description="Open a room here.", allow_abbrev=False)
    _add_common(parser)
    parser.add_argument("--model", default="", help="model to start; part of its name is enough")
    parser.add_argument("--start", action="store_true", help="start the model as soon as it fits")
    parser.add_argument("--wait", type=_count, default=1, metavar="N", help="with --start: wait for N devices")
    parser.add_argument("--auto-allow", action="store_true", help="let everybody in who knows the code")
    parser.add_argument("--again", action="store_true", help="open the last room again, if it can be")
    parser.add_argument("--no-fetch", dest="fetch", action="store_false", help="do not download the starter model")
    return msgspec.convert(vars(parser.parse_args(arguments)), HostOptions)


def _join(arguments: Sequence[str]) -> JoinOptions:
    parser = _Parser("pooled join", description="Join a room and lend this device's memory.", allow_abbrev=False)
    parser.add_argument("where", metavar="LINK-OR-CODE", help="the invite link, in quotes, or the room's code")
    _add_common(parser)
    return msgspec.convert(vars(parser.parse_args(arguments)), JoinOptions)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="", help="what this device is called")
    parser.add_argument("--gb", type=_gigabytes, default=None, help="memory to lend; 0 only asks")
    parser.add_argument("--signal", action="append", default=[], metavar="SERVER", help="room server to try first")


def _gigabytes(text: str) -> float:
    """Raises ArgumentTypeError for anything but a sensible number."""
    try:
        gb = float(text)
    except ValueError:
        gb = -1.0
    if not 0 <= gb <= LARGEST_GB:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of GB, such as 4")
    return gb


def _count(text: str) -> int:
    """Raises ArgumentTypeError for anything but a sensible number."""
    if not text.isdecimal() or not 1 <= int(text[:6]) <= MOST_DEVICES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of devices, such as 2")
    return int(text)


_READERS = {"host": _host, "join": _join}
