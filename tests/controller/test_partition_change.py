"""One partition's change: elections, eligible leader replicas, the end of reassignments."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.controller.leader_choice import Election
from barnabas.controller.partition_change import PartitionChange, Rules
from barnabas.metadata.topics import RECOVERED, RECOVERING, UNASSIGNED_DIR, Partition
from barnabas.metadata.versions import LATEST_VERSION, MetadataVersion
from barnabas.wire import Uuid
from barnabas.wire.records.metadata import PartitionChangeRecord
from tests.controller.situations import TOPIC

D1, D2, D3, D4 = (Uuid(bytes([n]) * 16) for n in (1, 2, 3, 4))


def change(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    /,
    *,
    leader: int | None = None,
    was_removing: tuple[int, ...] = (),
    was_adding: tuple[int, ...] = (),
    elr: tuple[int, ...] = (),
    last_known_elr: tuple[int, ...] = (),
    recovery: int = RECOVERED,
    alive: tuple[int, ...] = (1, 2, 3, 4),
    min_isr: int = 1,
    elr_enabled: bool = True,
    election: Election = Election.ONLINE,
    version: MetadataVersion = LATEST_VERSION,
    **wanted: Any,
) -> dict[str, Any] | None:
    """What the record of a change says beside the partition's name; None without a record."""
    if leader is None:
        leader = isr[0] if isr else -1
    directories = (UNASSIGNED_DIR,) * len(replicas)
    partition = Partition(
        replicas, directories, isr, was_removing, was_adding, leader, recovery, 5, 7, elr, last_known_elr
    )
    rules = Rules(version, elr_enabled, min_isr, False, lambda broker_id: (D1, D2, D3, D4)[broker_id - 1])
    made = PartitionChange(TOPIC, 0, partition, rules, alive.__contains__, election)
    for name, value in wanted.items():
        setattr(made, name, value)
    built = made.build()
    if built is None:
        return None
    record, record_version = built
    assert record_version == version.partition_change_record_version
    unchanged = PartitionChangeRecord()
    names = PartitionChangeRecord.__slots__[2:]
    return {name: getattr(record, name) for name in names if getattr(record, name) != getattr(unchanged, name)}


# --- elections


def test_without_a_reason_nothing_changes() -> None:
    assert change((1, 2, 3), (1, 2)) is None


@pytest.mark.parametrize("election", list(Election))
def test_a_leader_that_dies_is_followed_by_the_first_in_sync_replica(election: Election) -> None:
    assert change((1, 3, 2), (1, 2, 3), alive=(2, 3), isr=[2, 3], election=election) == {"leader": 3, "isr": [2, 3]}


def test_a_living_leader_stays_although_another_is_preferred() -> None:
    assert change((1, 2), (1, 2), leader=2) is None
    assert change((1, 2), (1, 2), leader=2, election=Election.PREFERRED) == {"leader": 1}


def test_a_preferred_leader_that_is_out_of_sync_or_dead_is_not_elected() -> None:
    assert change((1, 2), (2,), election=Election.PREFERRED) is None
    assert change((1, 2), (1, 2), leader=2, alive=(2,), election=Election.PREFERRED) is None


def test_a_preferred_election_keeps_the_partition_online() -> None:
    assert change((1, 2, 3), (2, 3), leader=2, alive=(1, 3), election=Election.PREFERRED) == {"leader": 3}


def test_without_elr_the_last_in_sync_replica_stays_in_the_isr() -> None:
    assert change((1, 2), (1,), alive=(2,), isr=[], elr_enabled=False) == {"leader": -1}


def test_an_unclean_election_takes_whoever_lives_and_marks_the_recovery() -> None:
    told = change((1, 2), (1,), alive=(2,), isr=[], elr_enabled=False, election=Election.UNCLEAN)
    assert told == {"leader": 2, "isr": [2], "leader_recovery_state": RECOVERING}


def test_an_unclean_election_prefers_the_in_sync_and_the_eligible() -> None:
    assert change((1, 2, 3), (1, 3), alive=(2, 3), isr=[3], election=Election.UNCLEAN) == {"leader": 3, "isr": [3]}
    told = change((1, 2, 3), (), elr=(3,), alive=(2, 3), election=Election.UNCLEAN, last_known_elr=(1,))
    assert told == {"leader": 3, "isr": [3], "eligible_leader_replicas": [], "last_known_elr": []}


def test_a_recovering_partition_that_is_elected_uncleanly_again_is_still_recovering() -> None:
    told = change((1, 2), (1,), recovery=RECOVERING, alive=(2,), isr=[], elr_enabled=False, election=Election.UNCLEAN)
    assert told == {"leader": 2, "isr": [2]}


# --- eligible leader replicas


def test_who_leaves_an_isr_below_the_minimum_stays_eligible() -> None:
    assert change((1, 2, 3), (1, 2, 3), min_isr=2, isr=[1, 2]) == {"isr": [1, 2]}
    assert change((1, 2, 3), (1, 2), min_isr=2, isr=[1]) == {"isr": [1], "eligible_leader_replicas": [2]}


def test_the_last_leader_is_remembered_while_there_is_none() -> None:
    told = change((1, 2, 3), (1,), elr=(2,), min_isr=2, alive=(3,), isr=[])
    assert told == {"isr": [], "leader": -1, "eligible_leader_replicas": [1, 2], "last_known_elr": [1]}


def test_an_eligible_replica_that_comes_back_leads_alone() -> None:
    told = change((1, 2, 3), (), elr=(1, 2), last_known_elr=(1,), min_isr=2, alive=(2, 3))
    assert told == {"isr": [2], "leader": 2, "eligible_leader_replicas": [1], "last_known_elr": []}


def test_an_isr_that_reaches_the_minimum_again_has_no_elr() -> None:
    assert change((1, 2, 3), (1,), elr=(2,), min_isr=2, isr=[1, 3]) == {
        "isr": [1, 3],
        "eligible_leader_replicas": [],
    }


def test_who_stopped_uncleanly_is_not_eligible() -> None:
    told = change((1, 2), (2,), elr=(1,), min_isr=2, alive=(2,), uncleanly_stopped=1)
    assert told == {"eligible_leader_replicas": []}
    told = change((1, 2), (1,), min_isr=1, alive=(2,), isr=[], uncleanly_stopped=1)
    assert told == {"isr": [], "leader": -1, "last_known_elr": [1]}


def test_when_nobody_is_eligible_the_last_known_leader_may_lead_again() -> None:
    told = change((1, 2), (), last_known_elr=(1,), alive=(1, 2))
    assert told == {"isr": [1], "leader": 1, "leader_recovery_state": RECOVERING, "last_known_elr": []}
    assert change((1, 2), (), last_known_elr=(1,), alive=(2,)) is None
    assert change((1, 2), (), last_known_elr=(1,), elr=(2,), alive=(1,), min_isr=2) is None


def test_when_the_feature_is_off_what_is_left_of_it_goes() -> None:
    assert change((1, 2), (1,), elr=(2,), min_isr=2, elr_enabled=False) == {"eligible_leader_replicas": []}


# --- leader epochs


@pytest.mark.parametrize(("level", "bumps"), [(11, True), (12, False), (30, False)])
def test_a_smaller_isr_bumps_the_leader_epoch_before_3_6(level: int, bumps: bool) -> None:
    told = change((1, 2), (1, 2), isr=[1], version=MetadataVersion(level), elr_enabled=False)
    assert told == ({"isr": [1], "leader": 1} if bumps else {"isr": [1]})
    assert change((1, 2), (1,), isr=[1, 2], version=MetadataVersion(level), elr_enabled=False) == {"isr": [1, 2]}


def test_a_replica_that_goes_bumps_the_leader_epoch() -> None:
    told = change((1, 2, 3), (1, 2, 3), replicas=[1, 2], isr=[1, 2])
    assert told is not None and told["leader"] == 1
    assert change((1, 2), (1, 2), replicas=[2, 1]) == {"replicas": [2, 1]}


# --- reassignments and directories


def test_a_new_replica_gets_the_directory_of_its_broker() -> None:
    told = change((1,), (1,), replicas=[1, 4], adding=[4])
    assert told == {"replicas": [1, 4], "adding_replicas": [4], "directories": [UNASSIGNED_DIR, D4]}
    before = change((1,), (1,), replicas=[1, 4], adding=[4], version=MetadataVersion(16), elr_enabled=False)
    assert before == {"replicas": [1, 4], "adding_replicas": [4]}


def test_a_directory_can_be_told() -> None:
    assert change((1, 2), (1, 2), directories={1: D1, 2: D2}) == {"directories": [D1, D2]}


def test_a_reassignment_ends_when_all_added_replicas_are_in_sync() -> None:
    moving: dict[str, Any] = {"was_removing": (1, 2), "was_adding": (3, 4)}
    assert change((3, 4, 1, 2), (1, 2), isr=[1, 2, 3], **moving) == {"isr": [1, 2, 3]}
    assert change((3, 4, 1, 2), (1, 2, 3), isr=[1, 2, 3, 4], **moving) == {
        "isr": [3, 4],
        "leader": 3,
        "replicas": [3, 4],
        "directories": [UNASSIGNED_DIR] * 2,
        "removing_replicas": [],
        "adding_replicas": [],
    }


def test_a_reassignment_to_fewer_replicas_waits_until_all_that_stay_are_in_sync() -> None:
    shrinking: dict[str, Any] = {"was_removing": (1, 2), "was_adding": (4,)}
    assert change((3, 4, 1, 2), (1, 2), isr=[1, 2, 4], **shrinking) == {"isr": [1, 2, 4]}
    told = change((3, 4, 1, 2), (1, 2), isr=[1, 2, 3, 4], **shrinking)
    assert told is not None and told["replicas"] == [3, 4]


def test_a_reassignment_never_takes_the_last_in_sync_replica() -> None:
    assert change((1, 2), (2,), was_removing=(2,), alive=(2,)) is None


def test_replicas_that_are_only_added_are_added_when_in_sync() -> None:
    told = change((1, 2), (1,), was_adding=(2,), isr=[1, 2])
    assert told == {"isr": [1, 2], "adding_replicas": []}


def test_a_leader_recovers() -> None:
    told = change((1, 2), (1,), recovery=RECOVERING, isr=[1, 2], leader_recovery_state=RECOVERED)
    assert told == {"isr": [1, 2], "leader_recovery_state": RECOVERED}
