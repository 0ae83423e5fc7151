"""The command line: verbs, flags, mistakes and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import app.__main__ as entry
from app.cli import menu
from app.cli import run as run_module
from app.cli.arguments import OVERVIEW, SHELLS, VERBS, read_arguments
from app.cli.options import (
    ChatOptions,
    HostOptions,
    JoinOptions,
    ListOptions,
    Options,
    PullOptions,
    RemoveOptions,
    ServeOptions,
    ShowWindow,
    Wish,
)
from app.serve.config import ServeConfig

LINK = "http://192.168.1.20:47600/r/4TKG9P?signal=192.168.1.20%3A47600#k=AbCdEfGhIjKlMnOpQrStUv"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POOLED_TOKEN", raising=False)


@pytest.mark.parametrize(
    ("arguments", "wish"),
    [
        ([], ShowWindow()),
        (["pooled://r/4TKG9P#k=x"], ShowWindow("pooled://r/4TKG9P#k=x")),
        (["host"], HostOptions()),
        (
            ["host", "--name", "otter", "--gb", "2.5", "--signal", "cloud", "--signal", "a:1", "--model", "smol"],
            HostOptions(name="otter", gb=2.5, signal=("cloud", "a:1"), model="smol"),
        ),
        (
            ["host", "--start", "--wait", "3", "--auto-allow", "--no-fetch"],
            HostOptions(start=True, wait=3, auto_allow=True, fetch=False),
        ),
        (
            ["host", "1.7b", "-y", "--devices", "2", "--allow-all", "--no-pull", "--gb", "max"],
            HostOptions(model="1.7b", start=True, yes=True, wait=2, auto_allow=True, fetch=False, most=True),
        ),
        (
            ["host", "--deny-unknown", "--split", "spread", "--ctx", "8192", "--chat", "--again", "-q", "--verbose"],
            HostOptions(deny_unknown=True, split="spread", ctx=8192, chat=True, again=True, quiet=True, verbose=True),
        ),
        (["host", "--serve=9000"], HostOptions(serve=ServeConfig(port=9000))),
        (["host", "--serve"], HostOptions(serve=ServeConfig())),
        (["join", LINK], JoinOptions(where=LINK)),
        (["join", "4TK-G9P", "--name", "heron", "--gb", "0"], JoinOptions(where="4TK-G9P", name="heron", gb=0)),
        (["join", "4TKG9P", "--wait", "0.5", "--json-log"], JoinOptions(where="4TKG9P", wait=0.5, json_log=True)),
        (["chat", "4TKG9P"], ChatOptions(where="4TKG9P")),
        (
            ["chat", LINK, "Why?", "--system", "Be brief.", "--think", "--max-tokens", "9", "--temperature", "0"],
            ChatOptions(where=LINK, prompt="Why?", system="Be brief.", think=True, most_tokens=9, temperature=0),
        ),
        (
            ["chat", "4TKG9P", "two", "words", "--no-color"],
            ChatOptions(where="4TKG9P", prompt="two words", colour=False),
        ),
        (["serve", "4TKG9P"], ServeOptions(where="4TKG9P")),
        (
            ["serve", "4TKG9P", "--port", "0", "--token", "secret", "--max-queue", "3"],
            ServeOptions(where="4TKG9P", serving=ServeConfig(port=0, token="secret", max_queue=3)),
        ),
        (
            ["serve", "4TKG9P", "--origin", "http://localhost:3000"],
            ServeOptions(where="4TKG9P", serving=ServeConfig(origins=("http://localhost:3000",))),
        ),
        (["pull", "1.7b", "smol"], PullOptions(("1.7b", "smol"))),
        (["download", "1.7b"], PullOptions(("1.7b",))),
        (["list", "--json"], ListOptions(json=True)),
        (["ls"], ListOptions()),
        (["rm", "1.7b", "-y"], RemoveOptions("1.7b", yes=True)),
    ],
)
def test_a_command_line_is_read(arguments: list[str], wish: Wish) -> None:
    assert read_arguments(arguments) == wish


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hots"], "did you mean host?"),
        (["jion", "x"], "did you mean join?"),
        (["pul"], "did you mean pull?"),
        (["models"], "did you mean list?"),
        (["zzz"], "the verbs are host, join, chat, serve, pull, list, rm"),
        (["host", "--nmae", "x"], "did you mean --name?"),
        (["serve", "4TKG9P", "--prot", "1"], "did you mean --port?"),
        (["host", "--zzzzz"], "--help"),
        (["host", "--gb", "many"], "'many'"),
        (["host", "--gb", "-2"], "'-2'"),
        (["host", "--gb", "nan"], "'nan'"),
        (["host", "--wait", "0"], "'0'"),
        (["host", "--name"], "--name needs a value"),
        (["host", "--split", "half"], "speed and spread"),
        (["host", "--ctx", "1"], "'1' is not a number of tokens"),
        (["host", "a", "--model", "b"], "two models"),
        (["join", "4TKG9P", "--wait", "soon"], "'soon'"),
        (["join", "a", "b"], "quotes"),
        (["join", "nonsense!"], "not a room code"),
        (["join"], "which room?"),
        (["chat", "https://example.org/"], "not a room code"),
        (["chat"], "pooled chat needs a room: pooled chat 4TK-G9P"),
        (["chat", "4TKG9P", "--temperature", "9"], "from 0 to 2"),
        (["chat", "4TKG9P", "--max-tokens", "0"], "'0'"),
        (["serve"], "invite link in quotes"),
        (["serve", "4TKG9P", "--port", "99999"], "'99999' is not a port"),
        (["serve", "4TKG9P", "--token", ""], "the token is empty"),
        (["serve", "4TKG9P", "--token-file", "/nowhere/at/all"], "cannot be read"),
        (["pull"], "pooled pull needs a model"),
        (["rm"], "pooled rm needs a model"),
        (["completion", "tcsh"], "bash, zsh, fish"),
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
    [
        (["--help"], "pooled join"),
        (["help"], "pooled serve"),
        (["--version"], "pooled "),
        (["host", "--help"], "--auto-allow"),
        (["chat", "-h"], "--max-tokens"),
    ],
)
def test_help_and_version_end_well(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_arguments(arguments)
    assert ended.value.code == 0
    assert says in capsys.readouterr().out


def test_the_overview_is_short_and_fits_a_terminal() -> None:
    lines = OVERVIEW.splitlines()
    assert len(lines) <= 13
    assert max(map(len, lines)) <= 100
    assert all(f"pooled {verb}" in OVERVIEW for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_its_flags(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_arguments([verb, "--help"])
    assert f"Usage: pooled {verb}" in capsys.readouterr().out


def test_a_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("  from a file \nsecond line\n")
    read = read_arguments(["serve", "4TKG9P", "--token-file", str(file)])
    assert isinstance(read, ServeOptions)
    assert read.serving.token == "from a file"
    monkeypatch.setenv("POOLED_TOKEN", "from the environment")
    read = read_arguments(["serve", "4TKG9P"])
    assert isinstance(read, ServeOptions)
    assert read.serving.token == "from the environment"
    assert "from the" not in repr(read)


def test_a_token_on_the_command_line_is_warned_about(capsys: pytest.CaptureFixture[str]) -> None:
    read_arguments(["serve", "4TKG9P", "--token", "secret"])
    assert "--token-file" in capsys.readouterr().err


def test_models_may_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_MODELS", "before")
    read_arguments(["list", "--models", str(tmp_path)])
    assert os.environ["POOLED_MODELS"] == str(tmp_path)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """What the program would do in a terminal on Linux without a screen."""
    ran: list[Options] = []

    def run_verb(options: Options) -> int:
        ran.append(options)
        return 7

    monkeypatch.setattr(sys, "argv", ["pooled"])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(entry, "_window", lambda _link: 3)
    monkeypatch.setattr(run_module, "run_verb", run_verb)
    for name in entry.DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    return ran


@pytest.mark.parametrize("display", ["DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"])
def test_with_a_screen_the_window_opens(display: str, ran: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(display, "x")
    assert entry.main() == 3
    assert ran == []


def test_without_a_screen_a_menu_asks(ran: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(menu, "is_asked", lambda _console: True)
    monkeypatch.setattr(menu, "ask", lambda _console: HostOptions())
    assert entry.main() == 7
    assert ran == [HostOptions()]


def test_where_nobody_can_be_asked_the_overview_is_said(
    ran: list[Options], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(menu, "is_asked", lambda _console: False)
    assert entry.main() == 0
    assert capsys.readouterr().out == OVERVIEW
    assert ran == []


def test_a_link_without_a_screen_joins(ran: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pooled", LINK])
    assert entry.main() == 7
    assert ran == [JoinOptions(where=LINK)]


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_name_the_program(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "completion", shell], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "_POOLED_COMPLETE" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)


def test_the_tab_key_finishes_verbs_and_models() -> None:
    def completed(*words: str) -> str:
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_POOLED_COMPLETE": "complete_bash"}
        command = [sys.executable, "-m", "app"]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | asked).stdout

    assert completed("pooled", "ho").split() == ["host"]
    assert "--deny-unknown" in completed("pooled", "host", "--de")
    assert completed("pooled", "pull", "qwen3-1").split() == ["qwen3-1.7b"]


def test_the_terminal_needs_no_qt() -> None:
    blocked = "import sys; sys.modules.update({'PySide6': None, 'qasync': None}); import app.__main__, app.cli.run"
    subprocess.run([sys.executable, "-c", blocked], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})


def test_help_loads_neither_the_room_nor_the_engine() -> None:
    look = (
        "import sys, app.__main__\n"
        "sys.argv = ['pooled', '--help']\n"
        "try: app.__main__.main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('app.room', 'app.engine', 'typer', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.endswith("[]\n")
