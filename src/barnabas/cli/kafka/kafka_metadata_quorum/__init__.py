"""kafka-metadata-quorum: `command` has the options and the requests, `lines` the output."""
