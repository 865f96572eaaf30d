"""Data sources of Spark for Kafka, one file each. Importing them is cheap: readers import the rest when they run."""
