"""Transactions: what is true of each transactional id, and the coordinator that decides and ends them."""
