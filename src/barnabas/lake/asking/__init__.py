"""A lake that is read: its tables by name, as of any moment, and beside a `cluster.yaml`."""
