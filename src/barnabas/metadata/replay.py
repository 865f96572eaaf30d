"""The only place where a record of the metadata log becomes a change of the image.

The loader handles transactions. Here, their begin and end records do nothing, and an abort raises ReplayError, because
only the loader has the image from before the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from barnabas.metadata import acls, brokers, configs, features, producer_ids, quotas, scram, tokens, topics
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import Draft, MetadataImage, Provenance
from barnabas.steps import Slices, at_once, stepwise
from barnabas.wire.message import Message
from barnabas.wire.records import metadata as records


def _nothing(draft: Draft, record: Message) -> None:
    pass


def _abort(draft: Draft, record: Message) -> None:
    raise ReplayError("an aborted transaction cannot be applied, only skipped")


REPLAY: Final[dict[type[Message], Callable[[Draft, Any], None]]] = {
    records.RegisterBrokerRecord: brokers.replay_register_broker,
    records.UnregisterBrokerRecord: brokers.replay_unregister_broker,
    records.TopicRecord: topics.replay_topic,
    records.PartitionRecord: topics.replay_partition,
    records.ConfigRecord: configs.replay_config,
    records.PartitionChangeRecord: topics.replay_partition_change,
    records.FenceBrokerRecord: brokers.replay_fence_broker,
    records.UnfenceBrokerRecord: brokers.replay_unfence_broker,
    records.RemoveTopicRecord: topics.replay_remove_topic,
    records.DelegationTokenRecord: tokens.replay_delegation_token,
    records.UserScramCredentialRecord: scram.replay_user_scram_credential,
    records.FeatureLevelRecord: features.replay_feature_level,
    records.ClientQuotaRecord: quotas.replay_client_quota,
    records.ProducerIdsRecord: producer_ids.replay_producer_ids,
    records.BrokerRegistrationChangeRecord: brokers.replay_broker_registration_change,
    records.AccessControlEntryRecord: acls.replay_access_control_entry,
    records.RemoveAccessControlEntryRecord: acls.replay_remove_access_control_entry,
    records.NoOpRecord: _nothing,
    records.ZkMigrationStateRecord: _nothing,
    records.RemoveUserScramCredentialRecord: scram.replay_remove_user_scram_credential,
    records.BeginTransactionRecord: _nothing,
    records.EndTransactionRecord: _nothing,
    records.AbortTransactionRecord: _abort,
    records.RemoveDelegationTokenRecord: tokens.replay_remove_delegation_token,
    records.RegisterControllerRecord: brokers.replay_register_controller,
    records.ClearElrRecord: topics.replay_clear_elr,
}


def _unknown(draft: Draft, record: Message) -> None:
    raise ReplayError(f"{type(record).__name__} is not a record of the metadata log")


def apply(draft: Draft, record: Message) -> None:
    REPLAY.get(type(record), _unknown)(draft, record)


def replay(image: MetadataImage, records: Iterable[Message], provenance: Provenance) -> MetadataImage:
    """Return the image after these records."""
    return at_once(replay_in_slices(image, records, provenance))


def replay_in_slices(image: MetadataImage, records: Iterable[Message], provenance: Provenance) -> Slices[MetadataImage]:
    """Return the image after these records. Nobody sees an image with a part of them."""
    draft = Draft(image)
    for some in stepwise(records):
        for record in some:
            apply(draft, record)
        yield
    return (yield from draft.finish_in_slices(provenance))
