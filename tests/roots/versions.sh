#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# versions.sh FOLDER: loads the plugins in FOLDER, as python/build.sh links them, with the GStreamer of older systems:
# Ubuntu 18.04 (1.14), 20.04 (1.16), 22.04 (1.20), 24.04 (1.24), Debian 11 (1.18). FOLDER also needs nmsfilterdemo. Every
# element must be found, and from 1.20 on a crowd must have the bytes of JSON that it has on this machine.
#
# By hand, since it needs Ubuntu's mirror: root, mmdebstrap, 1 GB in NMSFILTER_CACHE. Ubuntu's packages are not
# authenticated where its keys are missing, so their programs run as nobody.
set -euo pipefail
plugins=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${NMSFILTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nmsfilter}/roots
mkdir -p "$cache"
source ./mirror.sh
packages=libc6,base-files,bash,coreutils,gstreamer1.0-tools,gstreamer1.0-plugins-base,gstreamer1.0-plugins-good

# Prints the version, the elements that are missing, and a checksum of the lines.
# shellcheck disable=SC2016  # expanded by the shell in the root
program='
export GST_PLUGIN_PATH=/plugins GST_REGISTRY=$(mktemp)
version=$(gst-inspect-1.0 --version)
version=${version##*GStreamer }
echo -n "${version%%[!0-9.]*} "
for element in nmsfilter detectionjson crowdtestsrc tensorreplay roioverlay; do
    gst-inspect-1.0 $element >/dev/null 2>&1 || echo -n "no $element "
done
gst-launch-1.0 -q crowdtestsrc num-buffers=5 ! nmsfilter ! detectionjson ! fdsink 2>/dev/null | md5sum'

status=0
expected=$(bash -c "${program//\/plugins/$plugins}")
echo "here: $expected"
for suite in bionic focal bullseye jammy noble; do
    root=$cache/$suite
    sources=("deb [trusted=yes] http://archive.ubuntu.com/ubuntu $suite"{,-updates}" main universe")
    [ "$suite" != bullseye ] || sources=("--keyring=$keyring" ${mirror:+"$mirror"})
    [ -d "$root" ] || {
        rm -rf --one-file-system "$root.tmp"
        mmdebstrap --quiet --variant=extract --include="$packages" "$suite" "$root.tmp" "${sources[@]}"
        mv "$root.tmp" "$root"
    }
    found=$(./enter.sh "$root" 65534:65534 ro "$plugins" /plugins -- bash -c "$program")
    echo "$suite: $found"
    case $found in
        *"no "*) status=1 ;;
        # Before 1.20 there are no tensors without DeepStream.
        1.1[468]*) ;;
        *) [ "${found#* }" = "${expected#* }" ] || status=1 ;;
    esac
done
exit $status
