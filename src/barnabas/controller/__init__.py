"""The controller's decisions: pure functions from a situation and a request to records and a response."""
