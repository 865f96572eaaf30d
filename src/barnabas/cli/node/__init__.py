"""Running a node in this process, and processes beside it, for `serve` and `demo`."""
