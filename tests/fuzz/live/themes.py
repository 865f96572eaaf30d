"""APIs that go together: a campaign stays with one theme for a while, so that requests meet the state that others made."""

from __future__ import annotations

from barnabas.broker.served import served_apis
from barnabas.wire import ApiKey

K = ApiKey
GROUPS = (
    *(K.JOIN_GROUP, K.SYNC_GROUP, K.HEARTBEAT, K.LEAVE_GROUP, K.OFFSET_COMMIT, K.OFFSET_FETCH, K.DESCRIBE_GROUPS),
    *(K.LIST_GROUPS, K.CONSUMER_GROUP_HEARTBEAT, K.CONSUMER_GROUP_DESCRIBE, K.DELETE_GROUPS, K.OFFSET_DELETE),
    K.FIND_COORDINATOR,
)
TRANSACTIONS = (
    *(K.INIT_PRODUCER_ID, K.ADD_PARTITIONS_TO_TXN, K.ADD_OFFSETS_TO_TXN, K.TXN_OFFSET_COMMIT, K.END_TXN, K.PRODUCE),
    *(K.WRITE_TXN_MARKERS, K.DESCRIBE_TRANSACTIONS, K.LIST_TRANSACTIONS, K.DESCRIBE_PRODUCERS, K.PRODUCE),
)
DATA = (K.PRODUCE, K.FETCH, K.FETCH, K.LIST_OFFSETS, K.OFFSET_FOR_LEADER_EPOCH, K.DELETE_RECORDS, K.METADATA)
# With the right words these fence the broker, move the quorum to another epoch or remove its members, as in Kafka.
UNSETTLING = (
    *(K.VOTE, K.BEGIN_QUORUM_EPOCH, K.END_QUORUM_EPOCH, K.UNREGISTER_BROKER, K.REMOVE_RAFT_VOTER, K.ADD_RAFT_VOTER),
    *(K.UPDATE_RAFT_VOTER, K.BROKER_HEARTBEAT, K.BROKER_REGISTRATION, K.UPDATE_FEATURES, K.CONTROLLER_REGISTRATION),
)
# They wait for others, or for as long as they are told to.
WAITING = frozenset({K.FETCH, K.JOIN_GROUP, K.SYNC_GROUP, K.PRODUCE})
EVERYTHING = tuple(ApiKey(key) for key in {**served_apis("broker"), **served_apis("controller")})
SETTLED = tuple(key for key in EVERYTHING if key not in UNSETTLING)
ADMIN = tuple(key for key in SETTLED if key not in {*GROUPS, *TRANSACTIONS, *DATA})

THEMES = {"groups": GROUPS, "transactions": TRANSACTIONS, "data": DATA, "admin": ADMIN, "everything": SETTLED}


def listeners_of(key: ApiKey) -> list[str]:
    return [kind for kind in ("broker", "controller") if key in served_apis(kind)]
