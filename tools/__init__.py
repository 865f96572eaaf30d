"""Tools for developers of barnabas: generators of sources and pages, and programs that tests and benchmarks run."""
