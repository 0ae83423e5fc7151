"""What is kept, what is driven out, and which kept state a prompt goes on from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from app.core.errors import ProtocolError
from app.engine.types import ColumnClass
from app.prompt.chat import AssistantTurn, Turn, UserTurn
from app.room.checkpoints import LAST_SLOT, SHORTEST_PIN, WORTH_SAVING, Checkpoint, Checkpoints, Keep, Mark
from app.room.copy_note import pack_note, read_note
from app.room.frame import DROP_ALL, Control, Frame, FrameKind
from app.room.held import Held
from app.room.marks import prompt_marks
from app.room.pending import PendingControl
from app.room.slices import cut, read_control, read_slice
from tests.room.toy import LANGUAGE


def held(ids: Sequence[int]) -> Held:
    return Held().grown(ids, ColumnClass.PROMPT, None)


def kept(*rows: tuple[Sequence[int], Keep], answers: int = 2) -> Checkpoints:
    checkpoints = Checkpoints(answers)
    for ids, keep in rows:
        checkpoints.add(Checkpoint(checkpoints.next_slot(), held(ids), keep))
    return checkpoints


def slots(checkpoints: Checkpoints) -> list[int]:
    return sorted(checkpoint.slot for checkpoint in checkpoints.kept)


def test_answers_drive_out_the_least_used_answer_only() -> None:
    checkpoints = kept(([1], Keep.PIN), ([1, 2], Keep.ANSWER), ([1, 2, 3], Keep.ANSWER), ([1, 9], Keep.TURN))
    assert checkpoints.best([1, 2, 7]) is not None
    assert checkpoints.add(Checkpoint(9, held([1, 5]), Keep.ANSWER)) == [3]
    assert slots(checkpoints) == [1, 2, 4, 9]


def test_one_conversation_drives_out_its_own_earlier_state_first() -> None:
    """A program's next answer costs another conversation nothing."""
    checkpoints = kept(([1, 2], Keep.ANSWER), ([7, 8], Keep.ANSWER))
    assert checkpoints.best([1, 2, 3]) is not None
    assert checkpoints.add(Checkpoint(9, held([1, 2, 3, 4]), Keep.ANSWER)) == [1]
    assert checkpoints.best([7, 8, 9]) is not None


@pytest.mark.parametrize("keep", [Keep.PIN, Keep.TURN, Keep.ASKED])
def test_a_new_pin_or_turn_takes_the_place_of_the_old_one(keep: Keep) -> None:
    checkpoints = kept(([1], keep), ([1, 2], Keep.ANSWER))
    assert checkpoints.add(Checkpoint(9, held([5]), keep)) == [1]
    assert slots(checkpoints) == [2, 9]


def test_the_longest_strict_prefix_wins() -> None:
    checkpoints = kept(([1], Keep.PIN), ([1, 2], Keep.ANSWER), ([1, 2, 3], Keep.ANSWER))
    found = [checkpoints.best(ids) for ids in ([1, 2, 3, 4], [1, 2, 3], [1, 2, 9], [1], [7, 8])]
    assert [checkpoint and checkpoint.slot for checkpoint in found] == [3, 2, 2, None, None]
    assert checkpoints.best([1, 2, 3, 4], longer_than=3) is None
    left_out = checkpoints.best([1, 2, 3, 4], but=3)
    assert left_out
    assert left_out.slot == 2


def test_the_same_tokens_are_kept_once_and_a_pin_stays_one() -> None:
    checkpoints = kept(([1, 2], Keep.ANSWER), ([1, 2, 3], Keep.ANSWER))
    assert checkpoints.again([1, 2], Keep.PIN)
    assert checkpoints.again([1, 2], Keep.ANSWER)
    assert not checkpoints.again([1], Keep.ANSWER)
    assert checkpoints.add(Checkpoint(8, held([4]), Keep.ANSWER)) == []
    assert checkpoints.add(Checkpoint(9, held([5]), Keep.ANSWER)) == [2]


def test_pins_are_given_up_last() -> None:
    checkpoints = kept(([1], Keep.PIN), ([1, 2], Keep.ANSWER))
    for expected in (2, 1):
        oldest = checkpoints.oldest()
        assert oldest
        assert oldest.slot == expected
        checkpoints.forget([oldest.slot])
    assert checkpoints.oldest() is None


def test_slots_go_round_past_the_last() -> None:
    checkpoints = Checkpoints(2)
    checkpoints.taken([40, 7])
    assert checkpoints.next_slot() == 41
    checkpoints.taken([LAST_SLOT])
    assert checkpoints.next_slot() == 1
    assert checkpoints.next_slot() == 2


def test_only_marks_that_save_reading_are_kept() -> None:
    ids = list(range(1000))
    checkpoints = kept((ids[:300], Keep.ANSWER))
    marks = [Mark(p, Keep.TURN) for p in (WORTH_SAVING - 1, 200, 300 + WORTH_SAVING - 1, 400, 460, 464, 999)]
    assert [mark.position for mark in checkpoints.worth(marks, ids, 0)] == [200, 400, 464]
    assert [mark.position for mark in checkpoints.worth(marks, ids, 400)] == [460]


def render(turns: Sequence[Turn], system: str = "") -> list[int]:
    return LANGUAGE.chat.render(turns, system)


@pytest.mark.parametrize("text", ["Why?", "1", "22", "\n3"])
def test_marks_stand_where_the_fixed_start_ends_and_the_last_question_begins(text: str) -> None:
    system = "s" * SHORTEST_PIN
    turns = [UserTurn("One?"), AssistantTurn(tuple(b"yes")), UserTurn(text)]
    ids = render(turns, system)
    marks = prompt_marks(lambda turns: render(turns, system), turns, ids)
    assert [mark.keep for mark in marks] == [Keep.PIN, Keep.TURN]
    assert ids[: marks[0].position] == render([UserTurn("?")], system)[: marks[0].position]
    assert bytes(i for i in ids[marks[0].position :] if i < 256).startswith(b"One?")
    assert bytes(i for i in ids[marks[1].position :] if i < 256).startswith(text.encode())


def test_a_short_start_is_pinned_only_when_asked_for() -> None:
    turns = [UserTurn("Why?")]
    ids = render(turns, "short")
    assert [mark.keep for mark in prompt_marks(lambda turns: render(turns, "short"), turns, ids)] == [Keep.TURN]
    pinned = prompt_marks(lambda turns: render(turns, "short"), turns, ids, pin_any=True)
    assert [mark.keep for mark in pinned] == [Keep.PIN]


def test_a_template_that_rewrites_old_answers_gets_a_mark_before_the_new_one() -> None:
    """As one that begins an answer with an empty think block and leaves that out once it is answered."""
    block = [256, 10, 257]

    def rewriting(turns: Sequence[Turn]) -> list[int]:
        return [*render(turns), *(block if isinstance(turns[-1], UserTurn) else [])]

    turns = [UserTurn("Why?")]
    ids = rewriting(turns)
    marks = prompt_marks(rewriting, turns, ids)
    assert marks[-1] == Mark(len(ids) - len(block), Keep.ANSWER)
    follow_up = rewriting([*turns, AssistantTurn(tuple(b"so")), UserTurn("And?")])
    assert follow_up[: marks[-1].position] == ids[: marks[-1].position]


# -- control words ----------------------------------------------------------------------------------------


def test_everything_pending_rides_on_the_next_frame() -> None:
    pending = PendingControl()
    pending.rejected_after(2)
    pending.save(5)
    pending.drop([3])
    pending.load(4)
    assert pending.take(reset=False) == Control(False, 2, 5, 4, (3,))
    assert pending.take(reset=False) == Control()


def test_a_reset_keeps_rollback_save_and_drop() -> None:
    pending = PendingControl()
    pending.rejected_after(0)
    pending.save(5)
    pending.drop([3])
    assert pending.take(reset=True) == Control(True, 0, 5, 0, (3,))


def test_drops_past_two_wait_and_what_was_not_saved_yet_is_not_dropped() -> None:
    pending = PendingControl()
    pending.save(9)
    pending.drop([1, 2, 3, 9])
    assert pending.take(reset=False) == Control(drop=(1, 2))
    assert pending.take(reset=False) == Control(drop=(3,))


def test_dropping_all_takes_everything_back() -> None:
    pending = PendingControl()
    pending.rejected_after(2)
    pending.save(5)
    pending.load(4)
    pending.drop_all()
    pending.drop([1, 2])
    assert pending.dropping_all
    assert pending.take(reset=True) == Control(True, drop=(DROP_ALL,))
    assert not pending.dropping_all


def test_alone_nobody_is_told_anything() -> None:
    pending = PendingControl(unheard=True)
    pending.save(5)
    pending.drop([1])
    pending.drop_all()
    assert pending.saving == 0
    assert pending.take(reset=False) == Control()


def test_the_words_cross_the_wire_in_the_published_bytes() -> None:
    """The second worked header of the protocol, through what the chain does."""
    pending = PendingControl()
    pending.rejected_after(2)
    pending.save(3)
    pending.drop([1])
    frame = Frame(FrameKind.HIDDEN_BATCH, 300, 4, bytes(8192), spec=True, control=pending.take(reset=False))
    data = cut(frame, 7)[0]
    assert data[:32].hex() == "5357010d000000070000012c0004000000020000000020000003000000010000"
    piece = read_slice(data)
    assert piece
    assert read_control(piece.flags, piece.save, piece.load, piece.drop) == frame.control
    with pytest.raises(ProtocolError):
        cut(Frame(FrameKind.HIDDEN, 0, 1, b"", control=Control(rollback=63)), 1)


# -- what is written beside a copy ------------------------------------------------------------------------


def test_a_note_brings_back_ids_classes_and_the_last_state() -> None:
    state = np.random.default_rng(1).normal(size=(3, 8)).astype(np.float32)
    one = Held().grown([1, 2], ColumnClass.PROMPT, None).grown([3, 4, 5], ColumnClass.STEP, state, floor=3)
    read = read_note(pack_note(one, Keep.PIN))
    assert read is not None
    back, keep = read
    assert keep is Keep.PIN
    assert (back.fed, back.floor) == (one.fed, 5)
    before = back.before(5)
    assert before is not None
    assert np.array_equal(before, state[2])
    assert read_note(pack_note(held([1]), Keep.TURN)) == (held([1]), Keep.TURN)
    for damaged in (b"", b"x", pack_note(one, Keep.PIN)[:-3]):
        assert read_note(damaged) is None
