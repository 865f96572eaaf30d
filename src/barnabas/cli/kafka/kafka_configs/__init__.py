"""kafka-configs: `command` has the options and the requests, `rules` the checks of options and the output."""
