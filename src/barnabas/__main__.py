"""`python -m barnabas`: the same as the command `barnabas`."""

from barnabas.cli.main import run

if __name__ == "__main__":
    run()
