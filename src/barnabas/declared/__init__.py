"""A cluster as a file declares it: read it, look at the cluster, find the difference, carry it out.

`document` (the file as values), `observe` (the cluster as values), `difference` (what to change, in which order), `execute`
(doing it). Its one rule: nothing here knows the command line; commands show what these say.
"""
