"""Records of Kafka's own logs as columns and JSON, with functions compiled per type and version. Pure."""
