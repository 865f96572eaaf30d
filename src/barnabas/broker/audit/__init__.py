"""The audit log: `audited` decides which requests get a line, and `audit_file` writes lines in a thread."""
