"""What every command shares, without a cluster: output, exit codes, failures, parsing, confirmation, `--watch`."""
