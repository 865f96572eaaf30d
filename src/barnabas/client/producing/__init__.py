"""What a producer is made of: settings, where records go, batches that wait, and who the producer is to the brokers."""
