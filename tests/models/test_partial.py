"""Versions of a file at its sources, and ranges that come in slowly."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.errors import LinkError
from app.models import partial as module
from app.models.partial import Filling, PartialFile, lent_ranges, note_of
from app.models.ranges import RangeSet, Span

SIZE = 1000


@pytest.fixture
def file(tmp_path: Path) -> PartialFile:
    made = PartialFile(tmp_path / "p", SIZE, "ab")
    made.create()
    return made


def again(file: PartialFile) -> PartialFile:
    return PartialFile(file.path, SIZE, "ab")


def test_the_same_version_is_believed_also_after_a_restart(file: PartialFile) -> None:
    assert file.is_of("hub", '"one"')
    file.keep(Span(0, 500), lent=False)
    assert file.is_of("hub", '"one"')
    assert again(file).is_of("hub", '"one"')
    assert again(file).good.total == 500


def test_who_names_no_version_is_believed(file: PartialFile) -> None:
    file.is_of("hub", '"one"')
    file.keep(Span(0, 500), lent=False)
    assert file.is_of("hub", "")
    assert file.is_of("mirror", '"other words"'), "each source has words of its own"
    assert file.good.total == 500


def test_another_version_makes_what_is_there_worthless(file: PartialFile) -> None:
    file.is_of("hub", '"one"')
    file.keep(Span(0, 500), lent=True)
    assert not file.is_of("hub", '"two"')
    assert (file.good, file.lent, file.beginnings) == (RangeSet(), RangeSet(), 1)
    assert not again(file).good.spans
    assert file.is_of("hub", '"two"')
    assert not file.is_of("hub", '"one"'), "an answer that was long on its way"
    assert file.beginnings == 1


def test_a_range_that_was_begun_before_the_change_is_not_noted_after_it(file: PartialFile) -> None:
    file.is_of("hub", '"one"')
    filling = Filling(file, Span(0, 500), lent=False)
    filling.put(bytes(300))
    file.is_of("hub", '"two"')
    filling.put(bytes(200))
    filling.close()
    assert not file.good.spans


def test_a_slow_range_is_noted_by_time(file: PartialFile, monkeypatch: pytest.MonkeyPatch) -> None:
    filling = Filling(file, Span(0, 500), lent=False)
    filling.put(bytes(100))
    assert not again(file).good.spans
    monkeypatch.setattr(module, "KEEP_WITHIN", 0.0)
    filling.put(bytes(100))
    assert again(file).good == RangeSet((Span(0, 200),))
    filling.close()


def test_a_range_takes_no_more_than_its_bytes(file: PartialFile) -> None:
    filling = Filling(file, Span(0, 500), lent=False)
    with pytest.raises(LinkError, match="More bytes"):
        filling.put(bytes(501))
    filling.close()


def test_a_note_of_before_there_were_versions_is_read(file: PartialFile) -> None:
    note_of(file.path).write_bytes(b'{"bytes":1000,"sha256":"ab","good":[[0,10]],"lent":[[5,10]]}')
    assert again(file).good.total == 10
    assert lent_ranges(file.path, SIZE, "ab").total == 5
