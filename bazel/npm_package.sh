#!/usr/bin/env bash
# npm_package.sh FOLDER NAME@VERSION: puts a package of npm, without what it would run, into FOLDER, whole or not at all.
set -euo pipefail

folder=$1 package=$2
command -v npm >/dev/null || { echo "npm_package.sh: no npm, which installs $package" >&2; exit 1; }
mkdir -p "$(dirname "$folder")"
unfinished=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$unfinished"' EXIT
npm install --prefix "$unfinished" --ignore-scripts --no-audit --no-fund --no-save "$package" >&2
chmod 755 "$unfinished"
mv "$unfinished" "$folder"
