"""The command `barnabas`: `main` finds commands, `commands/` and `kafka/` hold them, the other shelves what they share."""
