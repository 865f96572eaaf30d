"""What Kafka's own scripts do and say, for the commands that have their names; nothing else uses it."""
