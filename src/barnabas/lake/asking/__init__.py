"""Reading a lake: its tables by name, as of any moment, and compared with a `cluster.yaml`."""
