"""``pooled pull``, ``list`` and ``rm``, without any network."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from app.cli import models, progress
from app.cli.ending import DONE, FAILED, Ending
from app.cli.model_names import model_called
from app.cli.options import ListOptions, PullOptions, RemoveOptions
from app.cli.progress import bar_line, plain_progress, time_text
from app.core.errors import ModelError
from app.models.shelf import Shelf
from app.models.store import home_of
from app.models.table import ModelRecord, ModelTable, builtin_table
from app.models.transfer import Stage, Tell, Transfer
from tests.cli.fake_room import Typist

CONTENT = b"weights"
KEY = "qwen3-1.7b"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path / "pooled"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("POOLED_MODELS", "OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> ModelRecord:
    """A model of few bytes under a name of the table."""
    record = builtin_table().get(KEY)
    file = msgspec.structs.replace(record.files[0], bytes=len(CONTENT))
    record = msgspec.structs.replace(record, files=(file,))
    table = builtin_table().with_record(record)
    monkeypatch.setattr(models, "full_table", lambda: table)
    return record


def put(record: ModelRecord) -> Path:
    path = home_of(record, record.files[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("name", ["1.7b", "QWEN3-1.7B", "qwen3-1"])
def test_a_part_of_a_name_is_enough(name: str) -> None:
    assert model_called(name, builtin_table()).key == KEY


@pytest.mark.parametrize(
    ("name", "says"),
    [("qwen3-", "could be"), ("", "could be"), ("zzz", "pooled list"), ("flash", "not published yet")],
)
def test_a_name_that_is_not_clear_says_what_there_is(name: str, says: str) -> None:
    with pytest.raises(ModelError) as error:
        model_called(name, builtin_table())
    assert says in f"{error.value}"


def test_an_exact_name_is_meant_although_others_begin_so() -> None:
    longer = msgspec.structs.replace(builtin_table().get(KEY), key=f"{KEY}-long", label="Long")
    assert model_called(KEY, ModelTable((longer, builtin_table().get(KEY)))).key == KEY


async def test_the_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert await models.show_list(ListOptions(json=True), Ending()) == DONE
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows[KEY]["state"] == "absent"
    assert rows[KEY]["bytes"] == builtin_table().get(KEY).download_bytes
    assert rows[KEY]["from"] is None


@pytest.mark.parametrize(("columns", "wide"), [("100", True), ("40", False)])
async def test_the_list_fits_the_terminal(
    columns: str, wide: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    await models.show_list(ListOptions(), Ending())
    said = capsys.readouterr().out
    assert ("NEEDS" in said) == wide
    assert max(map(len, said.splitlines())) <= int(columns)
    assert f"{KEY}  " in said


async def test_a_model_that_is_here_is_not_pulled_again(
    small: ModelRecord, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def provide(_shelf: Shelf, key: str, tell: Tell) -> Path:
        tell(Transfer(5, 10, 1e6, 5.0))
        tell(Transfer(10, 10, 1e6, 0.0))
        return put(small)

    monkeypatch.setattr(Shelf, "provide", provide)
    assert await models.pull(PullOptions(("1.7b",)), Ending()) == DONE
    said = capsys.readouterr().out
    assert " 50%  " in said
    assert "is here, 0.0 MB." in said
    assert await models.pull(PullOptions(("1.7b",)), Ending()) == DONE
    assert "here already" in capsys.readouterr().out


async def test_ctrl_c_says_how_to_go_on(
    small: ModelRecord, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def provide(_shelf: Shelf, key: str, tell: Tell) -> Path:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(Shelf, "provide", provide)
    pulling = asyncio.create_task(models.pull(PullOptions((small.key,)), Ending()))
    await begun.wait()
    pulling.cancel()
    assert await pulling == FAILED
    assert f"pooled pull {KEY} goes on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "deleted"), [(("y", "yes"), True), (("y", ""), False), (("n",), False), (("y", "n"), False)]
)
async def test_a_model_is_deleted_after_two_yeses(
    answers: tuple[str, ...],
    deleted: bool,
    small: ModelRecord,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, typist = put(small), Typist(interactive=True)
    monkeypatch.setattr(models, "Keyboard", lambda _descriptor: typist.keyboard)
    typist.type(*answers)
    code = await models.remove(RemoveOptions("1.7b"), Ending())
    typist.end()
    assert path.exists() != deleted
    assert code == (DONE if deleted else FAILED)
    assert ("are free again" in capsys.readouterr().out) == deleted


@pytest.mark.parametrize("yes", [True, False])
async def test_without_a_person_it_takes_a_flag(
    yes: bool, small: ModelRecord, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, typist = put(small), Typist()
    monkeypatch.setattr(models, "Keyboard", lambda _descriptor: typist.keyboard)
    assert await models.remove(RemoveOptions("1.7b", yes=yes), Ending()) == (DONE if yes else FAILED)
    typist.end()
    assert path.exists() != yes
    assert ("-y" in capsys.readouterr().out) != yes


HALF = Transfer(500_000_000, 1_000_000_000, 25e6, 20.0)


@pytest.mark.parametrize("width", [120, 80, 60, 40, 20])
def test_the_bar_keeps_its_figures_on_a_narrow_terminal(width: int) -> None:
    line = bar_line("Qwen3 1.7B", HALF, width)
    assert len(line) < width
    assert line.endswith("20 s left") == (width >= 60)
    assert " 50%" in line


def test_a_bar_is_ascii_where_it_must_be() -> None:
    assert bar_line("Qwen3", HALF, 120, plain=True).isascii()


def test_on_a_terminal_the_line_takes_its_own_place() -> None:
    out = io.StringIO()
    tell, end = progress.progress("Qwen3", Console(file=out, width=80, force_terminal=True, color_system=None))
    tell(HALF)
    tell(HALF)
    end()
    assert out.getvalue().count("\r\x1b[K") == 2
    assert out.getvalue().endswith("\r\x1b[K")
    assert "\n" not in out.getvalue()


def test_the_check_is_told_from_its_beginning() -> None:
    out = io.StringIO()
    tell = plain_progress(Console(file=out, width=40))
    tell(Transfer(10, 10, 1.0, None))
    tell(Transfer(5, 10, 1.0, None, Stage.CHECK))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert "checked" in lines[1]


@pytest.mark.parametrize(("seconds", "text"), [(7.4, "7 s"), (185, "3:05 min"), (7800, "2:10 h"), (1e9, "99:59 h")])
def test_time_is_said_as_a_person_reads_it(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
