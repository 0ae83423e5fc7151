"""Qt's stylesheet, made from the theme's tokens."""

from __future__ import annotations

from string import Template

from app.ui import theme
from app.ui.fonts import MONO

SHEET = Template("""
QMainWindow, QWidget#page, QWidget#column { background: $page; }
QWidget#header { background: $card; border: none; border-bottom: 1px solid $line; }
QWidget#column { border: none; }
QScrollArea, QScrollArea > QWidget > QWidget#clear { background: transparent; border: none; }
QLabel { color: $ink; background: transparent; }
QLabel[tone="soft"] { color: $soft; }
QLabel[tone="muted"] { color: $muted; }
QLabel[tone="good"] { color: $good; }
QLabel[tone="bad"] { color: $bad; }
QLabel[tone="accent"] { color: $accent; }
QToolTip { color: $card; background: $ink; border: none; padding: 4px 8px; }

QPushButton { color: $ink; background: $card; border: 1px solid $line; border-radius: ${round}px;
  min-height: ${inner}px; padding: 0 ${pad}px; font-weight: 500; }
QPushButton:hover { background: $code; }
QPushButton:pressed { background: $line; }
QPushButton:disabled { color: $muted; background: $page; }
QPushButton[kind="primary"] { color: $on_accent; background: $accent; border-color: $accent; font-weight: 600; }
QPushButton[kind="primary"]:hover { background: $accent_hover; border-color: $accent_hover; }
QPushButton[kind="primary"]:disabled { color: $muted; background: $line; border-color: $line; }
QPushButton[kind="big"] { color: $on_accent; background: $accent; border-color: $accent; font-weight: 600;
  border-radius: ${big_round}px; min-height: ${big}px; padding: 0 ${big_pad}px; }
QPushButton[kind="big"]:hover { background: $accent_hover; border-color: $accent_hover; }
QPushButton[kind="big"]:disabled { color: $muted; background: $line; border-color: $line; }
QPushButton[kind="wide"] { border-radius: ${big_round}px; min-height: ${big}px; }
QPushButton[kind="strong"] { color: $card; background: $ink; border-color: $ink; font-weight: 600; }
QPushButton[kind="strong"]:hover { background: $soft; border-color: $soft; }
QPushButton[kind="quiet"] { background: transparent; border-color: transparent; color: $muted; font-weight: 400; }
QPushButton[kind="quiet"]:hover { color: $ink; background: $code; }
QPushButton[kind="action"] { background: transparent; border: none; color: $muted; font-weight: 400; padding: 0; }
QPushButton[kind="action"]:hover { color: $ink; }
QPushButton[kind="link"] { background: transparent; border: none; color: $accent; padding: 0; text-align: left; }
QPushButton[kind="bad"] { color: $bad; }
QPushButton[kind="item"] { background: transparent; border: none; border-radius: 10px; color: $soft;
  font-weight: 400; text-align: left; padding: 0 10px; min-height: ${item}px; }
QPushButton[kind="item"]:hover { background: $code; color: $ink; }
QPushButton[kind="item"]:checked { background: $tint; color: $ink; font-weight: 500; }
QPushButton[kind="round"] { padding: 0; min-width: ${small}px; max-width: ${small}px; min-height: ${small}px;
  max-height: ${small}px; border-radius: ${small_round}px; }
QPushButton[kind="code"] { font-family: "$mono"; font-weight: 400; }
QPushButton[kind="small-bad"] { color: $bad; border-color: $bad; min-height: ${small}px;
  border-radius: ${small_round}px; padding: 0 ${small_pad}px; }
QPushButton[kind="small"] { min-height: ${small}px; border-radius: ${small_round}px; padding: 0 ${small_pad}px; }

QLineEdit { color: $ink; background: $card; border: 1px solid $line; border-radius: ${round}px;
  min-height: ${inner}px; padding: 0 ${pad}px; selection-background-color: $accent; selection-color: $on_accent; }
QLineEdit:focus { border: 1px solid $accent; }
QLineEdit[kind="bare"] { border: none; background: transparent; padding: 0; min-height: 0; }
QTextEdit { color: $ink; background: transparent; border: none;
  selection-background-color: $accent; selection-color: $on_accent; }
QFrame#code { background: $code; border: 1px solid $line; border-radius: 10px; }
QFrame#bubble { background: $tint; border: none; border-radius: ${card_radius}px; border-bottom-right-radius: 4px; }
QFrame#tint { background: $tint; border: none; border-radius: 10px; }
QFrame#rule { background: $line; border: none; max-height: 1px; min-height: 1px; }
QFrame#rule[upright="true"] { max-height: 16777215px; max-width: 1px; min-width: 1px; }

QScrollBar:vertical { background: transparent; width: 10px; margin: 2px; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 2px; }
QScrollBar::handle { background: $empty; border-radius: 3px; min-height: 24px; min-width: 24px; }
QScrollBar::handle:hover { background: $muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
""")


def stylesheet() -> str:
    look = theme.current()
    colours = {name: value for name, value in vars(look.palette).items() if isinstance(value, str)}
    control, big, small = look.px(theme.CONTROL), look.px(42), look.px(30)
    return SHEET.substitute(
        colours,
        accent_hover="#2239C8" if not look.dark else "#97A7FF",
        mono=MONO,
        inner=control - 2,
        round=control // 2,
        pad=look.px(16),
        big=big - 2,
        big_round=big // 2,
        big_pad=look.px(25),
        small=small - 2,
        small_round=small // 2,
        small_pad=look.px(12),
        item=look.px(38),
        card_radius=theme.CARD_RADIUS,
    )
