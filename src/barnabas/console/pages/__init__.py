"""The pages, one module each. `PAGES` are the addresses of a module below that of a cluster, `FORMS` those of its changes."""
