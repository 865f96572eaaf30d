"""What a decision gives. It stands apart from the loop that runs decisions: who decides knows no event loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from barnabas.wire import Message

R_co = TypeVar("R_co", covariant=True)

Records = Sequence[tuple[Message, int]]  # each with the version to write it in


class Result(NamedTuple, Generic[R_co]):
    """The records that make the decision true, and the answer once they are committed."""

    records: Records
    response: R_co
