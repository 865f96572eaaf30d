"""The metadata quorum: its health, and controllers to add as voters."""
