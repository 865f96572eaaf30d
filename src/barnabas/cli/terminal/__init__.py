"""Code that commands share and that needs no cluster: output, exit codes, failures, parsing, confirmation, `--watch`."""
