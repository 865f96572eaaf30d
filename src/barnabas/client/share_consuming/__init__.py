"""The parts of a share consumer."""
