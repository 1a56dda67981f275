"""The release that this tree becomes: programs, packages and messages to other nodes have it from here."""

RELEASE = "0.3.0"

# 2026-11-26 00:00 UTC, the day on which this release began: of man pages and of the files in packages, which so are the same whenever and
# wherever they are built.
RELEASE_EPOCH_S = 1795651200
