"""`barnabas completion`: print the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

INSTALL = {
    "bash": """Add this line to ~/.bashrc:  eval "$(barnabas completion bash)\"""",
    "zsh": """Add this line to ~/.zshrc, after compinit:  eval "$(barnabas completion zsh)\"""",
    "fish": "Run this once:  barnabas completion fish > ~/.config/fish/completions/barnabas.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALL)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell. Its last line explains how to install it.

    \b
    Examples:
      eval "$(barnabas completion bash)"       enable it in this shell
      barnabas completion fish                 print it
    """
    cls = get_completion_class(shell)
    assert cls is not None, shell
    script = cls(ctx.find_root().command, {}, "barnabas", "_BARNABAS_COMPLETE")
    # The method of the base class: the one for bash starts a bash to check its version.
    click.echo(ShellComplete.source(script).strip())
    click.echo(f"# {INSTALL[shell]}")
