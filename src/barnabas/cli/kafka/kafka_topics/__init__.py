"""kafka-topics: `command` has the options and the requests, `lines` the rules and the output."""
