"""The metadata quorum: its health, and controllers that may join it."""
