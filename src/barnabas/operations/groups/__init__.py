"""Consumer groups: positions and lag, resets of offsets."""
