"""Lines of the audit log; zeros if there is none."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices

WRITTEN = counter("barnabas_audit_lines_written_total", "Lines that were written to the audit log.")
DROPPED = counter(
    "barnabas_audit_lines_dropped_total", "Lines of the audit log that were lost: its disk was too slow, or failed."
)
QUEUED = gauge("barnabas_audit_queue_bytes", "Lines of the audit log that wait to be written.")
METRICS = (WRITTEN, DROPPED, QUEUED)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    audit = node.services.audit
    out.add(WRITTEN, 0 if audit is None else audit.file.written)
    out.add(DROPPED, 0 if audit is None else audit.file.dropped)
    out.add(QUEUED, 0 if audit is None else audit.file.queued_bytes)
    yield
