"""`compiler.py VERB [options]` reads a program from standard input.

Its answer goes to standard output with exit status 0; faults of the program go to standard error
with exit status 1, each as FILE:LINE:COL: CODE message.
"""

import sys


def main(words: list[str]) -> int:
    """The exit status of one request."""
    verb = words[0] if words else ""
    if verb not in ("simplify", "compile"):
        sys.stderr.write(f'expected one of the verbs simplify, compile, got "{verb}"\n')
        return 1
    program = sys.stdin.buffer.read()
    sys.stderr.write(f"<stdin>:1:1: E000 {verb} of these {len(program)} bytes is not implemented\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
