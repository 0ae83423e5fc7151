"""The relay's part of the settings: what each kind keeps, what is wrong with an address, where secrets go."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.core.settings import RelaySettings
from app.ui.sheets.relay import NO_ADDRESS, NO_RELAY, SAVED, Kind, RelaySection, RelayWish


def section(qtbot: QtBot, settings: RelaySettings | None = None) -> tuple[RelaySection, list[RelayWish]]:
    made, wishes = RelaySection(settings or RelaySettings()), list[RelayWish]()
    qtbot.addWidget(made)
    made.wanted.connect(wishes.append)
    return made, wishes


def test_a_user_and_a_password(qtbot: QtBot) -> None:
    made, wishes = section(qtbot)
    made.choose(Kind.USER)
    made.url.setText(" turn:relay.example ")
    made.user.setText("otter")
    made.password.setText("holt")
    made.only.setChecked(True)
    made.save.click()
    assert wishes == [RelayWish(RelaySettings("turn:relay.example", "otter", only=True), "holt", "")]
    assert made._says.text() == SAVED


def test_what_is_kept_is_shown_and_a_password_left_empty_stays(qtbot: QtBot) -> None:
    kept = RelaySettings("turns:relay.example", "otter")
    made, wishes = section(qtbot, kept)
    assert made.password.text() == ""
    assert not made.url.isHidden()
    assert made.secret.isHidden()
    made.save.click()
    assert wishes == [RelayWish(kept, None, "")]


def test_a_shared_secret_and_an_address(qtbot: QtBot) -> None:
    made, wishes = section(qtbot, RelaySettings("turn:relay.example", shared=True))
    made.secret.setText("north")
    made.save.click()
    made.choose(Kind.ADDRESS)
    made.credentials.setText("https://relay.example/turn")
    made.save.click()
    assert wishes == [
        RelayWish(RelaySettings("turn:relay.example", shared=True), "", "north"),
        RelayWish(RelaySettings(credentials="https://relay.example/turn"), "", ""),
    ]


def test_none_forgets_everything(qtbot: QtBot) -> None:
    made, wishes = section(qtbot, RelaySettings(credentials="https://relay.example/turn", only=True))
    made.choose(Kind.NONE)
    made.save.click()
    assert wishes == [RelayWish(RelaySettings(), "", "")]


@pytest.mark.parametrize("url", ["", "relay.example", "https://relay.example", "turn:a b", "turns:r?transport=udp"])
def test_a_wrong_address_is_not_kept(qtbot: QtBot, url: str) -> None:
    made, wishes = section(qtbot)
    for kind, said in ((Kind.USER, NO_RELAY), (Kind.SECRET, NO_RELAY)):
        made.choose(kind)
        made.url.setText(url)
        made.save.click()
        assert made._says.text() == said
    made.choose(Kind.ADDRESS)
    made.credentials.setText("turn:relay.example")
    made.save.click()
    assert made._says.text() == NO_ADDRESS
    assert wishes == []
