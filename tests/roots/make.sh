#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# make.sh SUITE DIR: creates a small Debian SUITE (trixie: GStreamer 1.26, forky: 1.28) in DIR, in
# which the plugin can be built and run, unless DIR exists. The script needs root, mmdebstrap and
# debian-archive-keyring. mirror.sh determines the source of the packages. DIR gets its name when it
# is complete. A lock serializes runs for one DIR.
set -euo pipefail
suite=$1 dir=$2

mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
[ ! -d "$dir" ] || exit 0

source "$(dirname "${BASH_SOURCE[0]}")/mirror.sh"
echo "packages from ${mirror:-the mirror that mmdebstrap uses by default}"

# Tests need a few elements of the bad plugins, and GStreamer's analytics library. Their packages
# depend on OpenCV and 270 others, so only these files are extracted.
# shellcheck disable=SC2016  # expanded by the shell that runs the hook
bad_plugins='
set -eu
cd "$1"
lib=usr/lib/$(chroot . gcc -dumpmachine)
chroot . sh -c "
    apt-get install -qq --yes -o Dpkg::Use-Pty=0 \$(apt-cache depends gstreamer1.0-plugins-bad | sed -n \"s/.*Depends: \(libonnxruntime.*\)/\1/p\") >/dev/null
    mkdir /tmp/bad && cd /tmp/bad && chmod 777 .
    apt-get download -qq gstreamer1.0-plugins-bad libgstreamer-plugins-bad1.0-dev
    for package in *.deb; do dpkg -x \$package .; done"
for plugin in analyticsoverlay onnx tensordecoders videoparsersbad y4mdec; do
    file=tmp/bad/$lib/gstreamer-1.0/libgst$plugin.so
    if [ -e $file ]; then cp $file $lib/gstreamer-1.0/; fi
done
cp tmp/bad/$lib/pkgconfig/gstreamer-analytics-1.0.pc $lib/pkgconfig/
cp -P tmp/bad/$lib/libgstanalytics-1.0.so $lib/
rm -rf tmp/bad'

packages=(ca-certificates gcc libc6-dev pkgconf libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev
    gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    libgstreamer-plugins-bad1.0-0 libpangocairo-1.0-0
    gstreamer1.0-libav python3-numpy python3-gi gir1.2-gst-plugins-base-1.0)

# Removes the remains of an interrupted run, but no file systems that are still mounted there.
rm -rf --one-file-system "$dir.tmp"
# A testing suite's release file is renewed often, and mirrors lag behind. Its signature is checked,
# but its date is not.
mmdebstrap --quiet --variant=minbase --keyring="$keyring" --include="$(IFS=,; echo "${packages[*]}")" \
    --aptopt='Acquire::Check-Valid-Until "false"' \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook="$bad_plugins" \
    "$suite" "$dir.tmp" ${mirror:+"$mirror"}
mv "$dir.tmp" "$dir"
