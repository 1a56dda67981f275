#!/usr/bin/env bash
# Unpacks a package of the distribution into a folder: unpack_package.sh FOLDER PACKAGE
# Unpacked and not installed: this machine may have a program of that name from elsewhere, which dpkg would not replace.
set -euo pipefail
folder=$1 package=$2
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d -p "$(dirname "$folder")")
trap 'rm -rf "$work"' EXIT
[ -n "$(apt-cache policy "$package")" ] || apt-get update -q
# As root, because the user _apt cannot write into the folder.
(cd "$work" && apt-get download -q -o APT::Sandbox::User=root "$package")
dpkg-deb -x "$work"/*.deb "$work/unpacked"
chmod 755 "$work/unpacked"
# Somebody else may have been quicker.
[ -d "$folder" ] || mv -T "$work/unpacked" "$folder"
