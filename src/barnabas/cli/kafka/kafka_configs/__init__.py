"""kafka-configs: `command` has the options and the requests, `rules` which options go together, and the output."""
