"""Running a node in this process, and child processes beside it, for `serve` and `demo`."""
