"""The models page and the sheet of a model file, from made-up values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.models.places import Origin
from app.models.transfer import Stage, Transfer
from app.room.intents import ChooseModel, StopStart
from app.room.state import RoomState
from app.ui import model_words, window
from app.ui.file_drop import DropHint
from app.ui.gallery import DONE, ROOM, scenes
from app.ui.gallery_pages import DAMAGED, FETCHING, KNOWN, LINES, LOOKED, OWN
from app.ui.models_view import (
    AddFile,
    DropFile,
    Fetch,
    FileLook,
    KeepToken,
    LookAgain,
    LookAt,
    ModelsView,
    Remove,
    StopFetch,
)
from app.ui.sheets.model_file import ADDED, NO_LICENCE, NO_TEMPLATE, ModelFileSheet, shortened
from app.ui.sheets.models import LOOKING, ModelsSheet
from app.ui.widgets import model_line
from app.ui.widgets.button import Button
from app.ui.widgets.model_line import ModelLineView
from app.ui.window import MainWindow

Stage_ = Callable[..., MainWindow]
SCENES = scenes()
STARTER, ABSENT, PART, _, FOREIGN, MINE = LINES


@pytest.fixture
def sheet(qtbot: QtBot) -> ModelsSheet:
    return watched(ModelsSheet(), qtbot)


@pytest.fixture
def file(qtbot: QtBot) -> ModelFileSheet:
    return watched(ModelFileSheet(), qtbot)


def watched(made: ModelsSheet | ModelFileSheet, qtbot: QtBot) -> ModelsSheet | ModelFileSheet:
    """``wishes`` and ``sent`` gather what it emits."""
    qtbot.addWidget(made)
    made.wishes, made.sent = [], []
    made.wished.connect(made.wishes.append)
    made.intent.connect(made.sent.append)
    return made


def texts(shown: ModelsSheet | ModelFileSheet | ModelLineView) -> list[str]:
    return [each.text() for each in shown.findChildren(QLabel) if each.isVisibleTo(shown) and each.text()]


def offered(view: ModelLineView) -> list[str]:
    return [each.text() for each in view.findChildren(Button) if each.isVisibleTo(view)]


def view_of(sheet: ModelsSheet, key: str) -> ModelLineView:
    return {**sheet.here.views, **sheet.there.views}[key]


def test_each_model_offers_what_can_be_done_with_it(sheet: ModelsSheet) -> None:
    sheet.display(KNOWN, RoomState())
    assert list(sheet.here.views) == [STARTER.key, PART.key, FOREIGN.key, MINE.key]
    assert {
        key: offered(view_of(sheet, key)) for key in (line.key for line in (STARTER, ABSENT, PART, FOREIGN, MINE))
    } == {
        STARTER.key: ["Show", "Delete"],
        ABSENT.key: ["Download"],
        PART.key: ["Go on", "Delete"],
        FOREIGN.key: ["Show"],
        MINE.key: ["Show", "Remove from list"],
    }


def test_a_download_is_begun_and_stopped(sheet: ModelsSheet) -> None:
    sheet.display(KNOWN, RoomState())
    view_of(sheet, ABSENT.key).fetch.click()
    fetching = replace(ABSENT, job=FETCHING)
    sheet.display(replace(KNOWN, lines=(STARTER, fetching)), RoomState())
    view = view_of(sheet, ABSENT.key)
    assert "Downloading, 5.2 GB of 20.8 GB, 24 MB a second, about 11 min left" in texts(view)
    assert offered(view) == ["Stop"]
    view.stop.click()
    assert sheet.wishes == [Fetch(ABSENT.key), StopFetch(ABSENT.key)]


def test_deleting_asks_twice_and_says_what_it_frees(sheet: ModelsSheet) -> None:
    sheet.display(KNOWN, RoomState())
    button = view_of(sheet, STARTER.key).remove
    button.click()
    assert (sheet.wishes, button.text()) == ([], "Free 98 MB?")
    button.click()
    assert (sheet.wishes, button.text()) == ([Remove(STARTER.key)], "Delete")


def test_a_question_that_is_not_answered_goes_away(sheet: ModelsSheet) -> None:
    sheet.display(KNOWN, RoomState())
    button = view_of(sheet, MINE.key).remove
    button.click()
    assert button.text() == "Remove? The file stays"
    button._asking.timeout.emit()
    button._asking.stop()
    button.click()
    assert sheet.wishes == []


def test_the_model_that_runs_is_not_deleted(sheet: ModelsSheet) -> None:
    sheet.display(KNOWN, DONE)
    assert not view_of(sheet, PART.key).remove.isEnabled()
    assert view_of(sheet, STARTER.key).remove.isEnabled()
    sheet.display(KNOWN, ROOM)
    assert view_of(sheet, PART.key).remove.isEnabled()


def test_the_owner_takes_a_running_model_down(sheet: ModelsSheet) -> None:
    sheet.display(KNOWN, replace(DONE, me="heron"))
    assert "The room's owner can choose another one." in texts(sheet)
    sheet.display(KNOWN, DONE)
    sheet._running._down.click()
    assert sheet.sent == [StopStart()]
    sheet.display(KNOWN, RoomState())
    assert not any("is running" in text for text in texts(sheet))


def test_a_line_says_what_the_room_says_of_the_model(sheet: ModelsSheet) -> None:
    sheet.display(KNOWN, ROOM)
    assert "1.8 GB · needs 5.6 GB · fits on otter alone · Apache-2.0" in texts(view_of(sheet, ABSENT.key))
    assert model_words.facts(FOREIGN) == "3.3 GB · needs 4.4 GB · in Ollama's store · runs on this device only · gemma"
    assert model_words.facts(replace(ABSENT, need_gb=0, licence="")) == "1.8 GB"


def test_how_much_is_here_never_reads_as_whole() -> None:
    assert [model_words.presence(line) for line in (STARTER, ABSENT, PART)] == ["", "", "65 % here"]
    assert set(model_words.FROM) == set(Origin)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Transfer(0, 0, 0, None), "Waiting for the other download"),
        (Transfer(0, 2_000_000_000, 0, None), "Downloading, 0 MB of 2.0 GB"),
        (
            Transfer(10**9, 2 * 10**9, 5e8, 2, Stage.CHECK),
            "Checking, 1.0 GB of 2.0 GB, 500 MB a second, under a minute left",
        ),
    ],
)
def test_progress_is_told_in_words(job: Transfer, words: str) -> None:
    assert model_words.progress(job) == words


def test_while_it_looks_and_when_it_cannot(sheet: ModelsSheet) -> None:
    sheet.display(ModelsView(looking=True), RoomState())
    assert LOOKING in texts(sheet)
    assert not sheet._again.isEnabled()
    sheet.display(ModelsView(trouble="It cannot.", remedy="Do that."), RoomState())
    assert "It cannot. Do that." in texts(sheet)
    assert LOOKING not in texts(sheet)
    sheet._again.click()
    assert sheet.wishes == [LookAgain()]


def test_the_disk_line() -> None:
    assert KNOWN.taken == STARTER.here + PART.here
    assert model_words.disk(13_700_000_000, 212_000_000_000) == "Models take 13.7 GB of this disk. 212.0 GB are free."
    assert model_words.disk(0, 10**10) == "10.0 GB are free."
    assert model_words.disk(0, -1) == ""


def test_the_hub_token_is_kept_and_forgotten_and_never_shown(sheet: ModelsSheet, qtbot: QtBot) -> None:
    sheet.display(KNOWN, RoomState())
    token = sheet._token
    assert not token.save.isEnabled()
    assert token.forget.isHidden()
    qtbot.keyClicks(token.field, " hf_otter ")
    qtbot.keyClick(token.field, Qt.Key.Key_Return)
    assert token.field.text() == ""
    sheet.display(replace(KNOWN, token_kept=True), RoomState())
    token.forget.click()
    assert sheet.wishes == [KeepToken("hf_otter"), KeepToken("")]
    assert "hf_otter" not in repr(sheet.wishes)


def test_a_file_is_shown_in_its_folder(sheet: ModelsSheet, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[QUrl] = []
    monkeypatch.setattr(model_line.QDesktopServices, "openUrl", opened.append)
    sheet.display(KNOWN, RoomState())
    view_of(sheet, MINE.key).folder.click()
    assert [Path(url.toLocalFile()) for url in opened] == [OWN.parent]


def test_the_page_looks_again_when_it_is_opened(stage: Stage_) -> None:
    shown, wishes = stage(RoomState()), []
    shown.wished.connect(wishes.append)
    shown.desk.plain_header.models.click()
    assert wishes == [LookAgain()]
    assert shown.sheets.sheet is not None
    assert isinstance(shown.sheets.sheet.content, ModelsSheet)


def test_the_page_is_reached_from_the_model_panel(stage: Stage_) -> None:
    shown = stage(ROOM)
    next(button for button in shown.desk.model.findChildren(Button) if button.text() == "All models").click()
    assert shown.sheets.sheet is not None
    assert isinstance(shown.sheets.sheet.content, ModelsSheet)


# -- a file ------------------------------------------------------------------------------------------------------


def test_a_file_says_what_it_is_before_it_is_added(file: ModelFileSheet) -> None:
    file.display(FileLook(OWN), ROOM)
    assert OWN.name in texts(file)
    assert not file.add.isEnabled()
    file.display(LOOKED, ROOM)
    assert {LOOKED.label, "2.0 GB", "3.1 GB", "128K", "llama3.2"} <= {*texts(file)}
    assert file._code._copy.copies == shortened(LOOKED.template)
    file.add.click()
    file.display(replace(LOOKED, adding=Transfer(0, 0, 0, None)), ROOM)
    assert not file.add.isEnabled()
    assert file.wishes == [AddFile()]


def test_a_file_without_words_of_its_own(file: ModelFileSheet) -> None:
    file.display(replace(LOOKED, licence="", template=""), RoomState())
    assert {NO_LICENCE, NO_TEMPLATE} <= {*texts(file)}
    assert file._code.isHidden()


def test_a_long_template_is_shortened() -> None:
    assert shortened("a\nb") == "a\nb"
    long = shortened("\n".join(str(i) for i in range(13)))
    assert long.splitlines()[-2:] == ["11", "… 1 more line"]


def test_a_damaged_file_says_why_in_words(file: ModelFileSheet) -> None:
    file.display(DAMAGED, ROOM)
    assert f"{DAMAGED.trouble} {DAMAGED.remedy}" in texts(file)
    assert file.add.isHidden()
    file.cancel.click()
    assert file.wishes == [DropFile()]


def test_an_added_model_is_chosen_at_once(file: ModelFileSheet) -> None:
    added = replace(LOOKED, key=ROOM.rows[1].key)
    file.display(added, RoomState())
    assert ADDED in texts(file)
    assert file.choose.isHidden()
    file.display(added, DONE)
    assert file.choose.isHidden()
    file.display(added, ROOM)
    file.choose.click()
    assert file.sent == [ChooseModel(ROOM.rows[1].key)]


def dragged(*paths: str) -> QMimeData:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(path) for path in paths])
    return mime


def enter(shown: MainWindow, mime: QMimeData) -> bool:
    event = QDragEnterEvent(
        QPoint(5, 5), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    event.ignore()
    QApplication.sendEvent(shown, event)
    return event.isAccepted()


def drop(shown: MainWindow, mime: QMimeData) -> None:
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(shown, event)


def hints(shown: MainWindow) -> list[DropHint]:
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return shown.findChildren(DropHint)


def test_a_model_file_is_dropped_on_the_window(stage: Stage_) -> None:
    shown, wishes = stage(ROOM), []
    shown.wished.connect(wishes.append)
    mime = dragged("/tmp/notes.txt", "/tmp/Tiny.GGUF")
    assert enter(shown, mime)
    assert len(hints(shown)) == 1
    drop(shown, mime)
    assert hints(shown) == []
    assert wishes == [LookAt(Path("/tmp/Tiny.GGUF"))]
    assert shown.sheets.sheet is not None
    content = shown.sheets.sheet.content
    assert isinstance(content, ModelFileSheet)
    assert "Tiny.GGUF" in texts(content)


def test_other_things_are_not_taken(stage: Stage_) -> None:
    shown, wishes = stage(ROOM), []
    shown.wished.connect(wishes.append)
    assert not enter(shown, dragged("/tmp/notes.txt"))
    text = QMimeData()
    text.setText("/tmp/model.gguf")
    assert not enter(shown, text)
    assert hints(shown) == []
    assert not shown.desk.chat.composer.box.canInsertFromMimeData(dragged("/tmp/model.gguf"))
    assert shown.desk.chat.composer.box.canInsertFromMimeData(text)
    assert wishes == []


def test_a_drag_that_leaves_leaves_no_hint(stage: Stage_) -> None:
    shown, mime = stage(ROOM), dragged("/tmp/a.gguf")
    enter(shown, mime)
    QApplication.sendEvent(shown, QDragLeaveEvent())
    assert hints(shown) == []


def test_a_file_is_chosen_by_name(stage: Stage_, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, wishes = stage(SCENES["models-start"]), []
    shown.wished.connect(wishes.append)
    answers = iter((None, OWN))
    monkeypatch.setattr(window, "choose_model_file", lambda _window: next(answers))
    shown.sheets.file_wanted.emit()
    assert wishes == []
    shown.sheets.file_wanted.emit()
    assert wishes == [LookAt(OWN)]
