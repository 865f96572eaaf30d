"""What was true when: records folded, in the order of the log, into rows with a beginning and an end. Pure but for `spark`."""
