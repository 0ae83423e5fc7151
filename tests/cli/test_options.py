"""The command line: verbs, flags, mistakes and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import app.__main__ as entry
from app.cli import run as run_module
from app.cli.options import HostOptions, JoinOptions, Options, ShowWindow, Wish, read_arguments

LINK = "http://192.168.1.20:47600/r/4TKG9P?signal=192.168.1.20%3A47600#k=AbCdEfGhIjKlMnOpQrStUv"


@pytest.mark.parametrize(
    ("arguments", "wish"),
    [
        ([], ShowWindow()),
        (["pooled://r/4TKG9P#k=x"], ShowWindow("pooled://r/4TKG9P#k=x")),
        (["host"], HostOptions()),
        (
            ["host", "--name", "otter", "--gb", "2.5", "--signal", "cloud", "--signal", "a:1", "--model", "smol"],
            HostOptions("otter", 2.5, ("cloud", "a:1"), "smol"),
        ),
        (
            ["host", "--start", "--wait", "3", "--auto-allow", "--no-fetch"],
            HostOptions(start=True, wait=3, auto_allow=True, fetch=False),
        ),
        (["join", LINK], JoinOptions(LINK)),
        (["join", "4TK-G9P", "--name", "heron", "--gb", "0"], JoinOptions("4TK-G9P", "heron", 0)),
    ],
)
def test_a_command_line_is_read(arguments: list[str], wish: Wish) -> None:
    assert read_arguments(arguments) == wish


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hots"], "did you mean host?"),
        (["jion", "x"], "did you mean join?"),
        (["zzz"], "the verbs are host and join"),
        (["host", "--nmae", "x"], "did you mean --name?"),
        (["host", "--zzzzz"], "--help"),
        (["host", "--gb", "many"], "'many'"),
        (["host", "--gb", "-2"], "'-2'"),
        (["host", "--gb", "nan"], "'nan'"),
        (["host", "--wait", "0"], "'0'"),
        (["host", "--name"], "--name"),
        (["join"], "LINK-OR-CODE"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_arguments(arguments)
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--help"], "pooled join"), (["--version"], "pooled "), (["host", "--help"], "--auto-allow")],
)
def test_help_and_version_end_well(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_arguments(arguments)
    assert ended.value.code == 0
    assert says in capsys.readouterr().out


@pytest.mark.parametrize("display", ["DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"])
def test_with_a_screen_the_window_opens_and_without_the_terminal(display: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Options] = []

    def run_verb(options: Options) -> int:
        ran.append(options)
        return 7

    monkeypatch.setattr(sys, "argv", ["pooled"])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(entry, "_window", lambda _link: 3)
    monkeypatch.setattr(entry, "set_up_logging", lambda: None)
    monkeypatch.setattr(run_module, "run_verb", run_verb)
    for name in entry.DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    assert entry.main() == 7
    assert ran == [HostOptions()]
    monkeypatch.setenv(display, "x")
    assert entry.main() == 3


def test_the_terminal_needs_no_qt() -> None:
    blocked = "import sys; sys.modules.update({'PySide6': None, 'qasync': None}); import app.__main__, app.cli.run"
    subprocess.run([sys.executable, "-c", blocked], check=True, env=os.environ | {"PYTHONPATH": os.getcwd()})
