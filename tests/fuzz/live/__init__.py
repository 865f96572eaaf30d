"""Requests to a whole node, made from the schema: valid, mutated, hostile and out of order, over several connections.

`world` knows plausible values, `requests` makes frames, `themes` says which APIs go together, `campaign` sends and judges.
"""
