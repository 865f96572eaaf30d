"""A lake on disk: its files and manifests, what feeds it, and the runner that adds to it batch by batch."""
