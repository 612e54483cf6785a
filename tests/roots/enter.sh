#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# enter.sh ROOT UID:GID [ro|rw FROM TO]... -- COMMAND...: runs COMMAND as this user in the folder
# ROOT that make.sh created. Each folder FROM of this machine is mounted at TO, read-only or
# writable. The script needs root. The mounts are in a separate namespace, and end together with the
# command.
set -euo pipefail
[ -n "${ENTER_NAMESPACE-}" ] || ENTER_NAMESPACE=1 exec unshare --mount "$BASH" "$0" "$@"

root=$1 user=$2
shift 2
while [ "$1" != -- ]; do
    mkdir -p "$root$3"
    mount --bind "$2" "$root$3"
    [ "$1" = rw ] || mount -o remount,bind,ro "$root$3"
    shift 3
done
shift
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
exec chroot --userspec="$user" "$root" /usr/bin/env -i HOME=/tmp TERM=dumb "$@"
