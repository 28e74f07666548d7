"""What a planted bug is."""

from typing import NamedTuple


class Bug(NamedTuple):
    name: str
    caught_by: str  # the program that must go red
    file: str
    old: str  # occurs exactly once
    new: str
