"""The tables of a lake: pure functions from DataFrames to a DataFrame, each with a declaration."""
