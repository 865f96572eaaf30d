"""What a consumer is made of: settings, partitions and where they are read, records of answers, assignors, membership."""
