"""The parts of a broker that replicate partitions with other brokers: connections, fetchers and proposals of ISRs."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.isr_proposals import IsrProposals
from barnabas.broker.other_brokers import OtherBrokers
from barnabas.broker.own_connections import OwnConnections
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicas.following.fetcher import Surroundings
from barnabas.replicas.following.fetchers import Fetchers
from barnabas.replicas.replicas import Replicas
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

ALTER_PARTITION_VERSION = 3


class Replication:
    """Built before `Replicas`, which calls it; `replicas` returns them."""

    def __init__(
        self,
        config: Callable[[], ServerConfig],
        image: Callable[[], MetadataImage],
        replicas: Callable[[], Replicas],
        *,
        connections: OwnConnections,
        channel: ControllerChannel,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._node_id = config().node_id
        self._channel = channel
        self._broker_epoch = broker_epoch
        self.others = OtherBrokers(self._node_id, image, config().inter_broker_listener_name, connections)
        self.proposals = IsrProposals(self._send)
        self.fetchers = Fetchers(
            Surroundings(
                self._node_id,
                config,
                broker_epoch,
                lambda: image().metadata_version,
                self.others.connect,
                lambda partition, change: replicas().truncate(partition, change),
                lambda partition: replicas().flush(partition),
                lambda: replicas().follower_throttle,
            )
        )

    async def stop(self) -> None:
        await self.fetchers.stop()
        await self.proposals.stop()
        self.others.close()

    async def _send(self, topics: list[AlterPartitionRequest.TopicData]) -> AlterPartitionResponse:
        request = AlterPartitionRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch(), topics=topics)
        response: AlterPartitionResponse = await self._channel.call(request, ALTER_PARTITION_VERSION)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        return response
