"""What can be chosen for a room: the word on the control, and a sentence about the choice."""

from __future__ import annotations

from app.prompt.chat import Length, Persona, Wording
from app.room.planner import SplitMode
from app.room.settings import Visibility

VISIBLE = {
    Visibility.EVERYONE: ("Everyone", "Everybody in the room reads every question and answer."),
    Visibility.OWNER: ("Only me", "Only you read everything; others see that something is asked."),
    Visibility.ASKER: ("Who asked", "You and whoever asked read an answer."),
}
LENGTHS = {
    Length.SHORT: ("Short", "About 150 tokens at most."),
    Length.NORMAL: ("Normal", "About 400 tokens at most."),
    Length.LONG: ("Long", "About 1,200 tokens at most."),
}
PERSONAS = {
    Persona.DEFAULT: ("Plain", "The model's own manner."),
    Persona.CONCISE: ("Concise", "As few words as it takes."),
    Persona.ELI5: ("Simple", "So that a child understands it."),
    Persona.PIRATE: ("Pirate", "Like a good-natured pirate."),
    Persona.HAIKU: ("Haiku", "Every answer is a haiku."),
    Persona.SWARM: ("We", "The devices answer as one."),
}
WORDINGS = {
    Wording.CREATIVE: ("Creative", "Looser: other words each time."),
    Wording.FOCUSED: ("Focused", "Close to the most likely words."),
    Wording.EXACT: ("Exact", "Always the most likely word; the same question gives the same answer."),
}
SPLITS = {
    SplitMode.SPEED: ("For speed", "The fastest devices, and as few as needed."),
    SplitMode.MEMORY: ("By memory", "Every computer holds its share."),
}
CACHES = {
    "f16": ("Whole", "What was said is remembered at 16 bits a number."),
    "q8": ("Small", "At 8 bits where the model can: about half the memory, a little slower."),
}
KEPT = {
    0: ("None", "A changed or repeated question is read from its beginning."),
    1: ("1", "The state after one answer is kept to go on from."),
    2: ("2", "The states after two answers are kept to go on from."),
    4: ("4", "The states after four answers are kept; each takes memory of every device."),
    8: ("8", "The states after eight answers are kept; each takes memory of every device."),
}
