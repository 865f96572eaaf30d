"""Settings: differences, history from the metadata log, rollback."""
