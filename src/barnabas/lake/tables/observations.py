"""Bronze: what a live cluster said when it was asked: bytes on disk, the lag of its quorum, the lag of its groups.

Only of lakes that were asked for it (`lake run --observe`). What a cluster was cannot be read again, from no log: a rebuild
of the lake takes these rows along.
"""

from __future__ import annotations

from barnabas.lake.reading.cluster_tables import TABLES as OBSERVED
from barnabas.lake.tables.bronze import records_table

_OBSERVED = (
    (
        "log_dirs",
        "How many bytes did each replica take?",
        ("broker_id", "log_dir", "topic_name", "partition", "is_future"),
    ),
    ("quorum", "How far was each node behind the leader of the quorum?", ("replica_id", "directory_id")),
    ("group_lag", "How far was each group behind the ends of its partitions?", ("group_id", "topic_name", "partition")),
)
TABLES = {
    name: records_table(
        f"observed_{name}",
        question,
        OBSERVED[name],
        ("cluster_id", "observation_id", *keys),
        ("cluster_id", "observation_id", "observed_at"),
    )
    for name, question, keys in _OBSERVED
}
"""By the name of the table of `kafka_cluster`."""
