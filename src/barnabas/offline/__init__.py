"""Reading the metadata of a cluster from files, without a running node. Nothing is written or locked."""
