"""Lets coverage guide the mutations: atheris, which is libFuzzer for Python (the extra `fuzz`).

Runs as a process of its own, because libFuzzer ends the process:
python -m tests.fuzz.guided TARGET [options of libFuzzer] DIRECTORY
"""

from __future__ import annotations

import sys
from typing import Any

import atheris

INSTRUMENTED = ["barnabas"]


def main() -> None:
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.target import load  # noqa: PLC0415

        target = load(name)
    list(target.seeds())  # imports and compiles what is imported on first use
    _instrument_codec()
    atheris.Setup(sys.argv, target.check)
    atheris.Fuzz()


def _instrument_codec() -> None:
    """Instrument the plain readers too, which are compiled on first use."""
    from barnabas.wire import codec  # noqa: PLC0415

    compile_reader = codec._ReaderCompiler.compile

    def instrumented(compiler: codec._ReaderCompiler) -> Any:
        compiled = compile_reader(compiler)
        return compiled if compiler.is_sliced else atheris.instrument_func(compiled)

    codec._ReaderCompiler.compile = instrumented  # type: ignore[method-assign, assignment]
    codec._READERS.clear()


if __name__ == "__main__":
    main()
