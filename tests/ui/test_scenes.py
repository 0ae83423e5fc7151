"""Every screen of the gallery: drawn without a warning, nothing cut off, closed without remains."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSize, QTimer, qInstallMessageHandler
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPushButton, QWidget

from app.ui.gallery import scenes
from app.ui.preferences import Look, Preferences
from app.ui.shots import SIZES
from app.ui.window import MainWindow
from tests.ui.conftest import PREFERENCES

SCENES = scenes()
HARMLESS = ("propagateSizeHints",)


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What Qt says while a test runs."""
    told: list[str] = []

    def take(_kind: object, _context: object, text: str) -> None:
        if not any(word in text for word in HARMLESS):
            told.append(text)

    before = qInstallMessageHandler(take)
    yield told
    qInstallMessageHandler(before)


@pytest.mark.parametrize("name", SCENES)
def test_every_scene_is_drawn_without_a_warning(
    name: str, stage: Callable[..., MainWindow], complaints: list[str]
) -> None:
    window = stage(SCENES[name])
    picture = window.grab().toImage()
    colours = {picture.pixelColor(x, y).name() for x in range(0, 1280, 16) for y in range(0, 820, 16)}
    assert len(colours) > 3
    assert complaints == []


@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if scene.main])
@pytest.mark.parametrize("width", ["", "-480"])
def test_texts_and_buttons_are_whole(name: str, width: str, stage: Callable[..., MainWindow]) -> None:
    window = stage(SCENES[name], SIZES[width])
    for widget in _shown(window):
        assert not _cut(widget), f"{_words(widget)!r} does not fit"
        if isinstance(widget, QAbstractButton) and not _scrolled_away(widget, window):
            right = widget.mapTo(window, widget.rect().topRight()).x()
            assert right <= window.width(), f"{_words(widget)!r} lies outside"


def _shown(window: MainWindow) -> list[QWidget]:
    return [w for w in window.findChildren(QWidget) if w.isVisibleTo(window) and w.width() > 0]


def _cut(widget: QWidget) -> bool:
    if isinstance(widget, QPushButton) and widget.text():
        return widget.width() < QFontMetrics(widget.font()).horizontalAdvance(widget.text().replace("&&", "&"))
    if isinstance(widget, QLabel) and widget.text():
        if widget.wordWrap():
            return widget.height() + 1 < widget.heightForWidth(widget.width())
        return widget.width() + 1 < widget.sizeHint().width()
    return False


def _words(widget: QWidget) -> str:
    return widget.text() if isinstance(widget, QLabel | QAbstractButton) else ""


def _scrolled_away(widget: QWidget, window: MainWindow) -> bool:
    return widget.visibleRegion().isEmpty()


@pytest.mark.parametrize("look", [Look.LIGHT, Look.DARK])
def test_double_sized_text_fits_too(look: Look, stage: Callable[..., MainWindow]) -> None:
    large = Preferences("otter", 18, look, text=200)
    for name in ("start", "model", "chat-done", "lobby"):
        window = stage(SCENES[name], SIZES[""], large)
        assert [_words(w) for w in _shown(window) if _cut(w)] == [], name


def test_every_control_has_a_name(stage: Callable[..., MainWindow]) -> None:
    for name in ("start", "model", "chat-done", "settings", "allow", "invite"):
        window = stage(SCENES[name])
        for button in window.findChildren(QAbstractButton):
            if button.isVisibleTo(window):
                assert button.accessibleName() or button.text(), f"a nameless {type(button).__name__} in {name}"


def test_closing_leaves_no_widget_timer_or_thread(stage: Callable[..., MainWindow], qapp: QApplication) -> None:
    threads = set(threading.enumerate())
    window = stage(SCENES["chat-answering"])
    gone: list[bool] = []
    window.destroyed.connect(lambda: gone.append(True))
    timers = window.findChildren(QTimer)
    window.close()
    assert not any(timer.isActive() for timer in timers if timer.objectName() in {"repaint", "slices"})
    window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert gone
    assert set(threading.enumerate()) == threads


@pytest.mark.parametrize("width", [1400, 1000, 700, 480])
def test_columns_fold_where_room_is_short(width: int, stage: Callable[..., MainWindow]) -> None:
    chat = stage(SCENES["chat-done"], QSize(width, 800)).desk.chat
    assert chat.speed.isVisible() == (width >= 1080)
    assert chat.side.isVisible() == (width >= 760)
    assert chat.composer.button.isVisible()


def test_preferences_change_the_look_at_once(stage: Callable[..., MainWindow]) -> None:
    window = stage(SCENES["chat-queue"])
    draft = window.desk.draft
    light = window.grab().toImage().pixelColor(600, 400)
    window.sheets.preferred.emit(Preferences(look=Look.DARK))
    QApplication.processEvents()
    assert window.grab().toImage().pixelColor(5, 300).lightness() < light.lightness()
    assert window.desk.draft == draft
    assert PREFERENCES.look is Look.LIGHT
