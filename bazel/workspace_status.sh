#!/bin/sh
# What packages say of the source they were made from. Bazel runs this before each build; only stamped rules read it, so nothing else is
# built anew for another revision.
revision=$(git rev-parse --short=12 HEAD 2>/dev/null) || revision=unknown
[ "$revision" = unknown ] || [ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || revision=$revision-modified
echo "STABLE_R2CC_REVISION $revision"
