"""Puts the chosen look on the whole application."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from app.ui import theme
from app.ui.fonts import font
from app.ui.preferences import Look, Preferences
from app.ui.stylesheet import stylesheet


def theme_for(preferences: Preferences) -> theme.Theme:
    dark = preferences.look is Look.DARK or (preferences.look is Look.SYSTEM and system_is_dark())
    return theme.Theme(
        theme.DARK if dark else theme.LIGHT,
        preferences.text / 100,
        preferences.motion and QApplication.isEffectEnabled(Qt.UIEffect.UI_General),
    )


def system_is_dark() -> bool:
    return QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark


def apply(application: QApplication, look: theme.Theme) -> None:
    """Widgets made before this keep painting, but are to be made anew."""
    theme.use(look)
    application.setStyle("Fusion")
    application.setFont(font())
    application.setPalette(_palette())
    application.setStyleSheet(stylesheet())


def _palette() -> QPalette:
    colours = theme.palette()
    made = QPalette()
    roles = QPalette.ColorRole
    for role, colour in (
        (roles.Window, colours.page),
        (roles.WindowText, colours.ink),
        (roles.Base, colours.card),
        (roles.AlternateBase, colours.code),
        (roles.Text, colours.ink),
        (roles.PlaceholderText, colours.muted),
        (roles.Button, colours.card),
        (roles.ButtonText, colours.ink),
        (roles.Highlight, colours.accent),
        (roles.HighlightedText, colours.on_accent),
        (roles.Link, colours.accent),
    ):
        made.setColor(role, QColor(colour))
    return made
