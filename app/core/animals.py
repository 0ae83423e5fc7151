"""First names for devices: short, lowercase, easy to say across a room."""

from __future__ import annotations

import secrets

_WORDS = (
    "adder alpaca ant badger bat bear beaver bee bison bobcat carp cat civet cobra condor coyote crab crane crow "
    "deer dingo dove duck eagle eel egret elk falcon ferret finch fox frog gecko gibbon goat goose gull hare hawk "
    "heron hippo ibex ibis jackal jay kiwi koala lark lemur lion llama lynx magpie marten mole moose moth newt "
    "ocelot orca otter owl panda pika puffin puma quail rabbit raven robin seal sloth stork swan tapir tern tiger "
    "toad trout turtle viper walrus weasel whale wolf wombat wren yak zebra"
)
ANIMALS = tuple(_WORDS.split())


def random_name(other_than: str = "") -> str:
    """One animal, never the one that is there already."""
    return secrets.choice([animal for animal in ANIMALS if animal != other_than])
