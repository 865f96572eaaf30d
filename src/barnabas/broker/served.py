"""The APIs that this program serves: those with a file in broker/api, in Kafka's versions except as stated here."""

from __future__ import annotations

import pkgutil
from functools import cache

from barnabas.broker import api as handlers
from barnabas.wire import APIS, Api, ApiKey
from barnabas.wire.schema import Versions

# Administrative APIs that still serve the versions removed in Apache Kafka 4.0.
SERVES_REMOVED_VERSIONS = frozenset({19, 20, 29, 30, 31, 32, 34, 35})

# APIs not implemented yet on one kind of listener.
NOT_SERVED_ON = {"broker": frozenset[int](), "controller": frozenset[int]()}

# APIs that write to logs: records, offsets, groups and transactions. All other changes are made by the controller.
WRITING_KEYS = frozenset(
    {
        *(ApiKey.PRODUCE, ApiKey.DELETE_RECORDS, ApiKey.ALTER_REPLICA_LOG_DIRS),
        *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_DELETE, ApiKey.DELETE_GROUPS, ApiKey.CONSUMER_GROUP_HEARTBEAT),
        *(ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS),
        *(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT),
        *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
        *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
        *(ApiKey.TXN_OFFSET_COMMIT, ApiKey.WRITE_TXN_MARKERS),
        *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE),  # a read may record a leader epoch
        *(ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE),
        *(ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
    }
)

# They create and change delegation tokens, which needs a login without a token.
TOKEN_KEYS = frozenset({ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN})

# The APIs that the active controller carries out for clients of any broker.
FORWARDABLE_KEYS = frozenset(
    {
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS),
        *(ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS),
        *TOKEN_KEYS,
        *(ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS),
        *(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.UPDATE_FEATURES),
        *(ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER),
        *(ApiKey.UNREGISTER_BROKER, ApiKey.ALLOCATE_PRODUCER_IDS),
    }
)

# The broker answers a part of these itself, and forwards the rest (`config_changes`).
PARTLY_FORWARDED_KEYS = frozenset({ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS})

# Always served, but advertised only if a receiver of telemetry is set.
TELEMETRY_KEYS = frozenset({int(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS), int(ApiKey.PUSH_TELEMETRY)})


@cache
def served_keys() -> frozenset[int]:
    """The APIs that have a handler."""
    return frozenset(ApiKey[module.name.upper()].value for module in pkgutil.iter_modules(handlers.__path__))


@cache
def served_versions(key: int) -> Versions:
    """Return the versions of an API that are accepted."""
    api = APIS[key]
    versions = api.versions if key in SERVES_REMOVED_VERSIONS else api.kafka
    return Versions(versions.first, versions.last - 1) if api.latest_unstable else versions


def advertised_keys(kind: str, *, takes_telemetry: bool) -> list[int]:
    """Return the APIs for ApiVersions. Telemetry is left out if not taken, because clients push where it is offered."""
    hidden = frozenset() if takes_telemetry else TELEMETRY_KEYS
    return [key for key in served_apis(kind) if key not in hidden]


@cache
def served_apis(kind: str) -> dict[int, Api]:
    """Return the APIs of a kind of listener, sorted by key."""
    keys = served_keys() - NOT_SERVED_ON[kind]
    return {key: api for key, api in sorted(APIS.items()) if kind in api.listeners and key in keys}
