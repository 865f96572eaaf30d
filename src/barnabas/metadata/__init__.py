"""The cluster's state as a value, replayed from the records of the metadata log. No I/O, clock or randomness.

>>> from barnabas.metadata.changes import changes
>>> from barnabas.metadata.image import EMPTY_IMAGE, Provenance
>>> from barnabas.metadata.replay import replay
>>> from barnabas.wire import Uuid
>>> from barnabas.wire.records.metadata import PartitionChangeRecord, PartitionRecord, TopicRecord
>>> topic_id = Uuid.parse("vKg5dgnRQ4yxvxLH4Qh7bA")
>>> partition = PartitionRecord(
...     partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=0, partition_epoch=0
... )
>>> image = replay(EMPTY_IMAGE, [TopicRecord(name="orders", topic_id=topic_id), partition], Provenance(1, 1, 0))
>>> shrink = PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=[2])
>>> after = replay(image, [shrink], Provenance(2, 1, 5))
>>> image.topics.get("orders").partitions[0].leader, after.topics.get("orders").partitions[0].leader
(1, 2)
>>> print(*changes(image, after))
partition orders-0: isr [1, 2] -> [2], leader 1 -> 2, leader_epoch 0 -> 1, partition_epoch 0 -> 1
"""
