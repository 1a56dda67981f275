#!/usr/bin/env bash
# Unpacks Debian's kernel, and those of its modules that a guest may want, into a folder: guest_kernel.sh FOLDER
# Unpacked and not installed: an installed kernel may be the one that this machine boots next. Remove the folder to get a newer kernel.
set -euo pipefail
folder=$1
image() { apt-cache depends linux-image-amd64 2>/dev/null | awk '/ Depends: linux-image/ {print $2; exit}'; }

package=$(image)
[ -n "$package" ] || { apt-get update -q; package=$(image); }
[ -n "$package" ] || { echo "guest_kernel.sh: this distribution's archive has no linux-image-amd64" >&2; exit 1; }

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d -p "$(dirname "$folder")")
trap 'rm -rf "$work"' EXIT
# As root, because the user _apt cannot write into the folder.
(cd "$work" && apt-get download -q -o APT::Sandbox::User=root "$package")
mkdir "$work/kernel"
chmod 755 "$work/kernel"
# A quarter of it: no drivers of graphics, sound, disks and NICs.
modules="./lib/modules/*/kernel"
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work/kernel" --wildcards --no-wildcards-match-slash \
  "./boot/vmlinuz-*" "$modules/arch" "$modules/crypto" "$modules/fs" "$modules/lib" "$modules/net" \
  "$modules/drivers/infiniband" "$modules/drivers/net/*.ko" "$modules/drivers/net/bonding" "$modules/drivers/virtio"
# Somebody else may have been quicker.
[ -d "$folder" ] || mv -T "$work/kernel" "$folder"
