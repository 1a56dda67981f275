"""The release that this tree becomes: programs, packages and messages to other nodes have it from here."""

RELEASE = "0.2.0"

# 2026-11-25 00:00 UTC, the day on which this release began: of man pages and of the files in packages, which so are the same whenever and
# wherever they are built.
RELEASE_EPOCH_S = 1795564800
