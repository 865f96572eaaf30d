"""Transactions: the state of each transactional id, and the coordinator that decides about and ends transactions."""
