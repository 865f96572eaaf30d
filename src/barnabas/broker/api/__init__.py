"""The handlers, one file per API with the API's name; `broker.dispatch` finds them by these names."""
