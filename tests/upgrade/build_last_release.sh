#!/usr/bin/env bash
# Builds r2ccd and the plugin of the release before this one, of this repository's history: build_last_release.sh FOLDER. A quarter of an
# hour of two processors, 2 GB while it lasts. The bytes that tests/upgrade/golden holds are of the same commit.
set -euo pipefail
folder=$1
commit=cfed66845bd6b635d80aa33de5784415b67716df  # 0.2.0
root=$(realpath "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../..")
history() { git -c safe.directory="$root" -C "$root" "$@"; }
history cat-file -e "$commit^{commit}" || {
  echo "build_last_release.sh: the history of $root lacks $commit, as in a shallow clone; git fetch --unshallow" >&2
  exit 1
}

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d -p "$(dirname "$folder")")
bazel=(./bazelw --output_base="$work/output")
end() {
  (cd "$work/tree" && bazel --output_base="$work/output" shutdown) || true
  chmod -R u+w "$work"
  rm -rf "$work"
}
trap end EXIT
mkdir "$work/tree" "$work/built"
history archive "$commit" | tar -x -C "$work/tree"
cd "$work/tree"
"${bazel[@]}" build //daemon:r2ccd //netplugin:libnccl-net-r2cc.so
for file in daemon/r2ccd netplugin/libnccl-net-r2cc.so; do
  mkdir -p "$work/built/$(dirname "$file")"
  install -m755 "bazel-bin/$file" "$work/built/$file"
done
mv "$work/built" "$folder"
