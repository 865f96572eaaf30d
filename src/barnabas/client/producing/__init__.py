"""Parts of a producer: settings, partitioner, accumulator, sender, completion, identity and transactions."""
