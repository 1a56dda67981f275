#!/usr/bin/env bash
# Builds Kubernetes' API server of Debian's source package: build_api_server.sh FILE. A quarter of an hour of processor time, 2 GB while it
# lasts. No package of Debian has the program, and nothing is installed here: bazel/packages/kube.txt names what must be.
set -euo pipefail
file=$1
go=/usr/lib/go-1.19
reflect2=/usr/share/gocode/src/github.com/modern-go/reflect2
for needed in "$go/bin/go" "$reflect2" /usr/bin/rsync /usr/bin/dpkg-source; do
  [ -e "$needed" ] || { echo "build_api_server.sh: $needed is missing; install the packages of bazel/packages/kube.txt" >&2; exit 1; }
done

mkdir -p "$(dirname "$file")"
work=$(mktemp -d -p "$(dirname "$file")")
trap 'rm -rf "$work"' EXIT
# Lists of its own: most machines have no sources in theirs.
mkdir -p "$work/lists/partial"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "deb-src http://deb.debian.org/debian $release main" > "$work/sources.list"
echo "deb-src http://deb.debian.org/debian-security $release-security main" >> "$work/sources.list"
apt() {
  apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
    -o APT::Sandbox::User=root "$@"
}
(cd "$work" && apt update && apt source --download-only kubernetes && dpkg-source --no-check -x kubernetes_*.dsc tree > /dev/null)

# The vendored one is older than this Go and dies in mapiterinit.
vendored=$work/tree/vendor/github.com/modern-go/reflect2
rm "$vendored"/*.go "$vendored"/*.s
cp "$reflect2"/*.go "$reflect2"/*.s "$vendored/"
rm -f "$vendored"/*_test.go
cd "$work/tree"
export PATH="$go/bin:$PATH" GOFLAGS=-mod=vendor GO111MODULE=on CGO_ENABLED=0 GOCACHE="$work/cache" GOPATH="$work/go" HOME="$work"
export KUBE_GIT_TREE_STATE=archive KUBE_GIT_VERSION=v1.20.2 KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20 GOPROXY=off
make WHAT=cmd/kube-apiserver
install -m755 "$(find _output -type f -name kube-apiserver -perm -u+x | head -1)" "$file.new"
# Somebody else may have been quicker: both are the same.
mv "$file.new" "$file"
