"""Write the sample programs: python -m week03_loops.programs."""

import click

from week03_loops.programs import regenerate

for path in regenerate():
    click.echo(f"wrote {path.name}")
