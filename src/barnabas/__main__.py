"""`python -m barnabas`: the same as the command `barnabas`."""

from barnabas.cli.main import main

if __name__ == "__main__":
    main(prog_name="barnabas")
