"""A broker's replicas: their logs, leadership, high watermarks, and the fetches that wait on them."""
