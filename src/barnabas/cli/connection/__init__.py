"""From the command line to a cluster: profiles, shared options, completion of names, arguments that name things in it."""
