"""Parts of a consumer: assignment, fetching, collector, positions, commits, subscription and membership."""
