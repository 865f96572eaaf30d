"""kafka-dump-log: `command` has the options, `lines` the output."""
