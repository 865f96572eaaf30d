"""A cluster at a glance. Values in, values out."""

from __future__ import annotations

from barnabas.operations.cluster_overview import overview_of
from barnabas.operations.doctor.cluster_facts import Unknown
from barnabas.operations.quorum.active_controller import ActiveController
from tests.operations.doctor.test_cluster import HEALTHY


def test_what_could_not_be_asked_is_told_once_and_by_its_name() -> None:
    facts = HEALTHY._replace(acls=Unknown("no right"), hanging=Unknown("no leader"))
    found = overview_of(facts, "id", ActiveController(1, None))
    assert found.unknown == {"hanging transactions": "no leader", "acls": "no right"}
    assert found.findings == []
    assert (found.brokers, found.running, found.topics) == (3, 3, 2)
