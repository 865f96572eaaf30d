"""Records: browsing and searching partitions, filters, and the records of Kafka's own topics in clear."""
