"""Mutates inputs by a seed, without knowing what they cover: for `make test`, and wherever atheris does not run."""

from __future__ import annotations

from random import Random

from tests.fuzz.target import Failure, Target, kept, minimised
from tests.wire.test_hostile_input import mutated

MAX_MINIMISED_BYTES = 4096


def pool_of(name: str, target: Target) -> list[bytes]:
    return [*target.seeds(), *kept(name)]


def crossed(draw: Random, one: bytes, other: bytes) -> bytes:
    """The head of one input and the tail of another."""
    return one[: draw.randrange(len(one) + 1)] + other[draw.randrange(len(other) + 1) :]


def run(name: str, target: Target, pool: list[bytes], seed: int, count: int) -> Failure | None:
    """Check so many mutations. Return the first failure, minimised."""
    draw = Random(f"{name} {seed}")
    for _ in range(count):
        data = draw.choice(pool)
        if draw.random() < 0.1:
            data = crossed(draw, data, draw.choice(pool))
        for _ in range(draw.choice((1, 1, 2, 4))):
            data = mutated(draw, data)
        if failure := tried(name, target, data):
            return failure
    return None


def tried(name: str, target: Target, data: bytes) -> Failure | None:
    """Check one input. Return the failure with the smallest input that raises the same type of error."""
    error = error_of(target, data)
    if error is None:
        return None
    if len(data) <= MAX_MINIMISED_BYTES:
        data = minimised(data, lambda smaller: type(error_of(target, smaller)) is type(error))
    return Failure(name, data, error_of(target, data) or error)


def error_of(target: Target, data: bytes) -> Exception | None:
    try:
        target.check(data)
    except Exception as error:
        return error
    return None
