"""Bronze: observations of a live cluster: bytes on disk, the lag of its quorum, the lag of its groups.

Only in lakes filled with `lake run --observe`. Observations cannot be repeated from any log, so a rebuild of the lake keeps
these rows.
"""

from __future__ import annotations

from barnabas.lake.reading.cluster_tables import TABLES as OBSERVED
from barnabas.lake.tables.bronze import records_table

_OBSERVED = (
    (
        "log_dirs",
        "How many bytes did each replica use?",
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
