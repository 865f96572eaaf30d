"""Writing a lake: its files and manifests, the feeds that fill it, and the runner that adds batches."""
