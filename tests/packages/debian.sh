#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# debian.sh ROOT FOLDER: builds the Debian packages in a copy of this tree, and installs them with
# apt in a copy of ROOT (tests/roots/clean.sh), which has this machine's Debian release without
# GStreamer. The elements must be found, and a face detector must find faces in a picture. FOLDER
# keeps the packages. CARGO_TARGET_DIR and DEB_BUILD_OPTIONS are obeyed. ORT_DYLIB_PATH and
# NMSFILTER_TEST_DATA have the meanings from tests/run.sh.
set -euo pipefail
root=$1 folder=$(realpath -m "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# dpkg-buildpackage writes into the tree and beside it. With --touch, the files are new, so that
# cargo rebuilds what was built from another copy.
rm -rf "$folder"
mkdir -p "$folder/nmsfilter"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create |
    tar --extract --touch --directory "$folder/nmsfilter"
(cd "$folder/nmsfilter" && dpkg-buildpackage --build=binary --no-sign) >"$folder/build.log" 2>&1 || {
    tail -n 50 "$folder/build.log"
    exit 1
}
rm -rf "$folder/nmsfilter"
for package in "$folder"/*.deb; do
    dpkg-deb --show --showformat='${Package} ${Version}: ${Installed-Size} KiB, depends on ${Depends}\n' "$package"
    dpkg-deb --contents "$package" | grep -v '/$'
done
for package in "$folder"/*.deb; do
    if dpkg-deb --field "$package" Depends | grep -iE 'cuda|nvidia|onnx'; then
        echo "$package depends on a driver or on ONNX Runtime" >&2
        exit 1
    fi
done
if dpkg-deb --field "$folder"/libnmsfilter0_*.deb Depends | grep -iE 'gst|glib'; then
    echo "libnmsfilter0 depends on GStreamer" >&2
    exit 1
fi

mkdir -p "$folder/packages"
cp "$folder"/*.deb c/examples/suppress.c "$folder/packages"
tests/packages/in_clean_root.sh "$root" "$folder/packages" '
    # Leaves out libnmsfilter-dev, which needs the headers of GStreamer.
    install /packages/gstreamer1.0-*.deb /packages/libnmsfilter0_*.deb /packages/libnmsfilter-gst0_*.deb
    # The dependencies of the packages must suffice for their libraries.
    if ldd /usr/lib/*/gstreamer-1.0/*.so /usr/lib/*/libnmsfilter*.so.0 | grep "not found"; then refuse "a library is missing"; fi
    # Pipelines additionally need tools and elements of GStreamer.
    install gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    /check/picture.sh
    # A C program works without GStreamer.
    install /packages/libnmsfilter*.deb gcc libc6-dev pkgconf
    cc -std=c99 /packages/suppress.c -o /tmp/suppress $(pkg-config --cflags --libs nmsfilter)
    /tmp/suppress
    [ "$(/tmp/suppress | wc -l)" = 2 ]
    if ldd /tmp/suppress | grep gst; then refuse "the program needs GStreamer"; fi
    apt-get remove --quiet=2 --yes gstreamer1.0-nmsfilter >/dev/null
    if gst-inspect-1.0 --exists nmsfilter; then refuse "nmsfilter is found after it was removed"; fi'
