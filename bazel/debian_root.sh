#!/usr/bin/env bash
# Makes a bare Debian 12 as one tar file, in which the packages are tried: debian_root.sh FILE
# With what they depend on and nothing else, so that installing them takes no network. Remove the file to get a newer one.
# A change of the list is another number in its name, in bazelw and tests/packages/debian_root.py.
set -euo pipefail
file=$1
mkdir -p "$(dirname "$file")"
work=$(mktemp -d -p "$(dirname "$file")")
trap 'rm -rf "$work"' EXIT
mmdebstrap --quiet --mode=root --variant=minbase \
  --include=init-system-helpers,iproute2,passwd,procps,python3,python3-rich,systemd,systemd-sysv bookworm "$work/root.tar"
# Somebody else may have been quicker.
[ -e "$file" ] || mv "$work/root.tar" "$file"
