"""The tables of a lake: each is a declaration with a pure function from DataFrames to a DataFrame."""
