"""All checks of a running cluster."""

from __future__ import annotations

from typing import Final

from barnabas.operations.doctor import brokers, clients, topics
from barnabas.operations.doctor.cluster_facts import ClusterFacts
from barnabas.operations.doctor.findings import Check

CHECKS: Final[tuple[Check[ClusterFacts], ...]] = (*brokers.CHECKS, *topics.CHECKS, *clients.CHECKS)
