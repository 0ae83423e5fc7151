"""Prompt chunks in submits of bounded length."""

from app.engine.pace import LONGEST, Pace


def test_the_first_chunk_goes_piece_by_piece_and_later_ones_by_what_was_measured() -> None:
    pace = Pace()
    assert pace.split([1, 2, 3], 512) == [[1], [2], [3]]
    pace.measured(pieces=32, columns=512, seconds=4 * LONGEST)
    assert [len(group) for group in pace.split(range(32), 512)] == [8, 8, 8, 8]
    assert [len(group) for group in pace.split(range(32), 128)] == [32]
    pace.measured(pieces=32, columns=512, seconds=1000)
    assert len(pace.split(range(32), 512)) == 32
