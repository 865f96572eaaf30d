"""kafka-storage: `command` has the options, `tool` the work, `scram_arguments` the credentials of --add-scram."""
