"""kafka-reassign-partitions: `command` has the options, `actions` the requests and the output."""
