"""Declared clusters: read a file, observe the cluster, compare the two, and make the changes.

`document` reads the file into values, `observe` reads the cluster into values, `difference` lists the changes in order, and
`execute` makes them. Its one rule: nothing here depends on the command line.
"""
