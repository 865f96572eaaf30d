"""kafka-streams-groups: `command` has the options, `actions` the requests, `lines` the rules and the output."""
