# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Source this file from bash. It sets `mirror`, the source of Debian's packages, and `keyring`, with
# which they are checked. The mirror is NMSFILTER_DEBIAN_MIRROR. If that is unset, it is the Debian
# mirror of this machine's apt. If there is none (Ubuntu), it is empty, and mmdebstrap uses its
# default.

mirror=${NMSFILTER_DEBIAN_MIRROR-}
if [ -z "$mirror" ]; then
    # shellcheck disable=SC2016  # apt's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -E '/debian/?$' | sort -u | head -n 1) || true
fi
# The apt of an Ubuntu machine lacks Debian's keys.
# shellcheck disable=SC2034  # used by those that source this
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || {
    echo "$keyring is missing: install debian-archive-keyring" >&2
    exit 1
}
