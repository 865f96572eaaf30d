"""The handlers, one file per API, named as the API is; `broker.dispatch` finds them by these names."""
