"""The clients that people use, as one shape: `CLIENTS`."""

from __future__ import annotations

from tests.compat.clients.aio import Aio
from tests.compat.clients.common import (
    BEGINNING,
    END,
    POLL_S,
    WAIT_S,
    Client,
    Consumer,
    Place,
    Producer,
    Record,
    RefusedError,
    dotted,
    poll_until,
    received,
    sent,
    take,
    wait_until,
)
from tests.compat.clients.confluent import Confluent
from tests.compat.clients.kafka_python import KafkaPython

CLIENTS: tuple[Client, ...] = (Confluent(), Aio(), KafkaPython())

__all__ = [
    "BEGINNING",
    "CLIENTS",
    "END",
    "POLL_S",
    "WAIT_S",
    "Client",
    "Consumer",
    "Place",
    "Producer",
    "Record",
    "RefusedError",
    "dotted",
    "poll_until",
    "received",
    "sent",
    "take",
    "wait_until",
]
