"""The interchange format: reading, writing and its JSON twin; `syllabus/spec.md` defines it."""

from week01_uops.interchange.diagnostics import Diagnostic, ReadErrors
from week01_uops.interchange.reader import read
from week01_uops.interchange.statements import Limits
from week01_uops.interchange.twin import from_json, to_json
from week01_uops.interchange.writer import Namer, listing, write

__all__ = [
    "Diagnostic",
    "Limits",
    "Namer",
    "ReadErrors",
    "from_json",
    "listing",
    "read",
    "to_json",
    "write",
]
