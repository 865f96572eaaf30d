"""The controller's decisions: pure functions of the situation and a request, giving records and a response."""
