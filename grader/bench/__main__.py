"""All measurements, one after the other: python -m grader.bench."""

from __future__ import annotations

import click

from grader.bench import compiling, rewrite


@click.command()
def main() -> None:
    """Print our times over tinygrad's: rewriting of index expressions, compilation of a block."""
    for title, bench in (("Rewriting", rewrite.main), ("Compiling to C text", compiling.main)):
        click.echo(f"{title} (below 1: this compiler is faster)")
        bench.main(args=[], standalone_mode=False)
        click.echo()


if __name__ == "__main__":
    main()
