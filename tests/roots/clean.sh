#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# clean.sh SUITE DIR: creates a Debian SUITE with no more packages than apt needs in DIR, for tests of what is installed
# there, unless DIR exists. The archives of the packages below and of those that they depend on are in apt's cache there,
# so that apt can install them without the network. Needs root, mmdebstrap and debian-archive-keyring;
# mirror.sh has where the packages are from. DIR is renamed to its name when complete; a lock serializes runs for the
# same DIR.
set -euo pipefail
suite=$1 dir=$2
packages=(gcc gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-tools libc6-dev
    libgstreamer-plugins-base1.0-dev libgstreamer1.0-dev pkgconf)

mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
[ ! -d "$dir" ] || exit 0

source "$(dirname "${BASH_SOURCE[0]}")/mirror.sh"
echo "packages from ${mirror:-the mirror that mmdebstrap uses by default}"
# The remains of an interrupted run, without file systems that are still mounted there.
rm -rf --one-file-system "$dir.tmp"
mmdebstrap --quiet --variant=minbase --keyring="$keyring" \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --skip=cleanup/apt \
    --customize-hook="chroot \"\$1\" apt-get install -qq --yes --download-only ${packages[*]}" \
    "$suite" "$dir.tmp" ${mirror:+"$mirror"}
mv "$dir.tmp" "$dir"
