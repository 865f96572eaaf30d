"""When the voters of a new cluster elect their first leader."""

from __future__ import annotations

from barnabas.raft.core import FIRST_ELECTION_DIVISOR
from barnabas.raft.quorum_state import Election
from barnabas.raft.roles import Prospective, Unattached
from barnabas.wire.messages.vote import VoteRequest
from tests.raft.harness import Replica
from tests.raft.simulation import config_of


def test_a_voter_of_a_new_cluster_asks_for_votes_soon_and_one_that_knows_an_epoch_after_its_timeout() -> None:
    config = config_of(1)
    for election, is_soon in ((Election(), True), (Election(7), False)):
        replica = Replica(1, election=election)
        assert isinstance(replica.core.role, Unattached)
        replica.after(config.election_timeout_ms // FIRST_ELECTION_DIVISOR)
        assert isinstance(replica.core.role, Prospective) is is_soon
        assert sum(isinstance(send.message, VoteRequest) for send in replica.take_sends()) == (2 if is_soon else 0)
