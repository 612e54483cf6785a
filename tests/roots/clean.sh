#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# clean.sh SUITE DIR: creates a Debian SUITE in DIR, for tests of installed packages, unless DIR
# exists. It contains only the packages that apt needs. The archives of the packages below and of
# their dependencies are in its apt cache, so that apt can install them without the network. The
# script needs root, mmdebstrap and debian-archive-keyring. mirror.sh determines the source of the
# packages. DIR gets its name when it is complete. A lock serializes runs for one DIR.
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
# Removes the remains of an interrupted run, but no file systems that are still mounted there.
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
