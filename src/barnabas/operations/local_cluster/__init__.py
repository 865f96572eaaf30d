"""A cluster of several nodes on one machine: who has which role, port and directory."""
