"""Facts: what was true when. Records are folded, in the order of the log, into rows with a start and an end. Only `spark`
and `coordinator_logs` use Spark."""
