#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# enter_copy.sh ROOT ...: works like enter.sh, but changes that COMMAND makes in ROOT are lost when
# it ends.
set -euo pipefail
[ -n "${ENTER_NAMESPACE-}" ] || ENTER_NAMESPACE=1 exec unshare --mount "$BASH" "$0" "$@"

root=$1
shift
# The changes are in memory, and the mounts end together with the command.
layers=$(mktemp -d)
trap 'umount "$layers" 2>/dev/null; rmdir "$layers"' EXIT
mount -t tmpfs tmpfs "$layers"
mkdir "$layers/changes" "$layers/work" "$layers/root"
mount -t overlay -o "lowerdir=$root,upperdir=$layers/changes,workdir=$layers/work" overlay "$layers/root"
status=0
"$(dirname "${BASH_SOURCE[0]}")/enter.sh" "$layers/root" "$@" || status=$?
umount --recursive --lazy "$layers/root"
exit "$status"
