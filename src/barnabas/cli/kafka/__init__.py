"""Kafka's own scripts, one file or folder per script, named like the script. Nothing else uses them."""
