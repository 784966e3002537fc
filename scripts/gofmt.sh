#!/bin/bash
# Fails when gofmt would change a file, and names it.
set -euo pipefail
cd "$(dirname "$0")/.."

files=$(gofmt -l .)
[ -z "$files" ] || { echo "gofmt: run gofmt -w on:" >&2; echo "$files" >&2; exit 1; }
