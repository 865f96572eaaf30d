"""The commands of barnabas itself, one noun per file: options in, rows out."""
