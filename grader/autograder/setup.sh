#!/usr/bin/env bash
# Gradescope runs this once, as root, with a network, when it builds the autograder's image.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")"
export DEBIAN_FRONTEND=noninteractive

new_enough() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

apt-get update
xargs -r apt-get install -y --no-install-recommends <apt.txt
python=python3
if ! new_enough "$python"; then
    apt-get install -y --no-install-recommends python3.11 python3.11-venv
    python=python3.11
fi
"$python" -m venv .venv
.venv/bin/pip install --quiet --constraint course/constraints.txt --requirement requirements.txt

# The reference and the tests are the grader's to read; a submission's processes run as somebody else.
chmod -R go-rwx .
