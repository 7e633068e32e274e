"""The command `contextforge`: one module a group of commands."""

from __future__ import annotations


def main() -> None:
    """Run the command line; every refusal is one line on stderr and an exit code."""
    from service.cli.app import run_command_line

    run_command_line()
