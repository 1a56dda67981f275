# shellcheck shell=bash disable=SC2154
# For .ci/run and .ci/long, which set minutes_max and source this: `bazel test`s within a limit of time, summed up in one line.
set -uo pipefail
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.." || exit 1

# require NAME,... NAME,...: what this machine promises to have, the second list as root: a test that is skipped for the lack of it fails.
require() {
  if [ -z "${R2CC_REQUIRE+set}" ]; then
    R2CC_REQUIRE=$1
    [ "$(id -u)" != 0 ] || R2CC_REQUIRE=$2
  fi
  export R2CC_REQUIRE
  echo "R2CC_REQUIRE=$R2CC_REQUIRE"
}

folder=$(mktemp -d -t r2cc-ci-XXXXXX) || exit 1
trap 'rm -rf "$folder"' EXIT

# minutes_left: of the limit, for the last `bazel test`.
minutes_left() { echo $((minutes_max - SECONDS / 60)); }

# tests NAME MINUTES ARGUMENT...: one `bazel test`, kept for the summary. SIGINT ends Bazel in good order, so that a run that hangs is
# summed up too; what did not run then counts as failed.
runs=()
tests() {
  local name=$1 minutes=$2
  shift 2
  echo "---- $name"
  timeout --signal=INT --kill-after=120 "${minutes}m" \
    ./bazelw test --keep_going --test_output=errors --curses=no --color=no --show_progress_rate_limit=30 \
    --build_event_json_file="$folder/$name.json" "$@" </dev/null
  runs+=("$name" "$folder/$name.json" "$?")
}

# The last line says `N passed, N failed, N skipped`, counted in test cases; the exit status is 0 only without a failure.
summarize() { python3 -m bazel.ci_summary "${runs[@]}"; }
