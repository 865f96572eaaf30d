"""For those who work on barnabas: what generates sources and pages, and what the tests and the benchmark run beside it."""
