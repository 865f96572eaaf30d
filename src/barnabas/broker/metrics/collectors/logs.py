"""Log directories, recovery, the cleaner, and the decompression of large payloads."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from barnabas.broker.metrics.exposition import Exposition, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices
from barnabas.storage.errors import StorageError
from barnabas.storage.files import Space, space_of

DIRECTORY_OFFLINE = gauge(
    "kafka_log_logmanager_logdirectoryoffline", "1 if a log directory is offline, otherwise 0.", "logdirectory"
)
OFFLINE_DIRECTORIES = gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that are offline.")
TOTAL_BYTES = gauge("barnabas_log_directory_total_bytes", "Size of the file system of a log directory.", "logdirectory")
USABLE_BYTES = gauge(
    "barnabas_log_directory_usable_bytes", "Free bytes in the file system of a log directory.", "logdirectory"
)
TO_RECOVER = gauge("barnabas_recovery_logs", "Logs that had to be recovered after an unclean shutdown.")
RECOVERING = gauge(
    "kafka_log_logmanager_remaininglogstorecover", "Logs that are still to be recovered after an unclean shutdown."
)
UNCLEANABLE = gauge(
    "kafka_log_logcleanermanager_uncleanable_partitions_count", "Logs that are not compacted because they are corrupt."
)
SINCE_LAST_RUN = gauge(
    "kafka_log_logcleanermanager_time_since_last_run_ms", "Milliseconds since the cleaner looked for logs to compact."
)
CLEANINGS = counter("barnabas_cleaner_cleanings_total", "Compactions of a log.")
RECORDS_READ = counter("barnabas_cleaner_records_read_total", "Records that compaction read.")
RECORDS_WRITTEN = counter("barnabas_cleaner_records_written_total", "Records that compaction kept.")
BYTES_READ = counter("barnabas_cleaner_bytes_read_total", "Bytes that compaction read.")
BYTES_WRITTEN = counter("barnabas_cleaner_bytes_written_total", "Bytes that compaction wrote.")
PAYLOADS = counter("barnabas_large_payloads_total", "Large payloads that were decompressed in a thread.")
PAYLOADS_OPEN = gauge("barnabas_large_payloads_open", "Large payloads in memory.")
PAYLOADS_WAITING = gauge("barnabas_large_payloads_waiting", "Large payloads that wait for room in memory.")
PAYLOADS_LIMIT = gauge("barnabas_large_payloads_limit", "Limit on large payloads in memory.")
METRICS = (
    *(DIRECTORY_OFFLINE, OFFLINE_DIRECTORIES, TOTAL_BYTES, USABLE_BYTES, TO_RECOVER, RECOVERING),
    *(UNCLEANABLE, SINCE_LAST_RUN, CLEANINGS, RECORDS_READ, RECORDS_WRITTEN, BYTES_READ, BYTES_WRITTEN),
    *(PAYLOADS, PAYLOADS_OPEN, PAYLOADS_WAITING, PAYLOADS_LIMIT),
)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    replicas, directories = node.replicas, node.log_directories
    if replicas is None or directories is None:
        return
    out.add(TO_RECOVER, replicas.unopened.to_recover)
    out.add(RECOVERING, replicas.unopened.recovering)
    out.add(PAYLOADS, replicas.payloads.opened)
    out.add(PAYLOADS_OPEN, replicas.payloads.open)
    out.add(PAYLOADS_WAITING, replicas.payloads.waiting)
    out.add(PAYLOADS_LIMIT, replicas.payloads.limit())
    if node.maintenance is not None:
        cleaner = node.maintenance.cleaner
        out.add(UNCLEANABLE, cleaner.uncleanable)
        out.add(SINCE_LAST_RUN, max(0, node.services.surroundings.now_ms() - cleaner.last_run_ms))
        out.add(CLEANINGS, cleaner.cleanings)
        out.add(RECORDS_READ, cleaner.cleaned.records_read)
        out.add(RECORDS_WRITTEN, cleaner.cleaned.records_written)
        out.add(BYTES_READ, cleaner.cleaned.bytes_read)
        out.add(BYTES_WRITTEN, cleaner.cleaned.bytes_written)
    online = [path for path in directories.paths if directories.is_online(path)]
    out.add(OFFLINE_DIRECTORIES, len(directories.paths) - len(online))
    for path in directories.paths:
        out.add(DIRECTORY_OFFLINE, int(path not in online), labels(logdirectory=path))
    space = asyncio.ensure_future(asyncio.to_thread(_space, online))
    yield space
    for path, (total, usable) in space.result().items():
        out.add(TOTAL_BYTES, total, labels(logdirectory=path))
        out.add(USABLE_BYTES, usable, labels(logdirectory=path))


def _space(paths: Sequence[str]) -> dict[str, Space]:
    """Return the size and the free bytes of each directory's file system. Runs in a thread."""
    found = {}
    for path in paths:
        try:
            found[path] = space_of(path)
        except StorageError:
            continue  # whoever writes there next takes it offline
    return found
