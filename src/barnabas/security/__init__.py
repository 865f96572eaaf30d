"""Principals, ACLs, authorization, and the client side of SASL."""
