#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# linked.sh [--glibc VERSION] FILE...: fails if a plugin is linked to a library other than GStreamer's, GLib's and the C
# library's, to a function of GStreamer that is newer than 1.14, or to a newer glibc than VERSION, or if it exports the entry
# points of another plugin. The versions of functions are those that the bindings in cargo's folder declare.
set -euo pipefail
glibc=
[ "${1-}" != --glibc ] || { glibc=$2; shift 2; }
allowed='^(libgst(reamer|base|video)-1\.0\.so\.0|lib(glib|gobject|gio|gmodule)-2\.0\.so\.0|lib(c|m|dl|pthread|rt|gcc_s)\.so\.[0-9]+|ld-linux.*)$'

# The functions that a version after 1.14 has introduced: those behind a feature.
platform=$(rustc -vV | sed -n "s/^host: //p")
newer=$(cargo metadata --locked --offline --filter-platform "$platform" --format-version 1 --manifest-path "$(dirname "$0")/../../Cargo.toml" | python3 -c '
import json, pathlib, re, sys
for package in json.load(sys.stdin)["packages"]:
    if re.fullmatch("gstreamer(-base|-video)?-sys", package["name"]):
        text = (pathlib.Path(package["manifest_path"]).parent / "src/lib.rs").read_text()
        print(*re.findall(r"cfg\(feature = \"v1_\d+\"\)\]\s*(?:#\[.*\]\s*)*pub fn (\w+)", text), sep="\n")
' | sort -u)
[ "$(wc -l <<<"$newer")" -gt 200 ] || { echo "linked.sh: the bindings have $(wc -l <<<"$newer") newer functions"; exit 1; }

status=0
fail() {
    echo "$@"
    status=1
}
for file; do
    libraries=$(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }')
    for library in $libraries; do
        [[ $library =~ $allowed ]] || fail "$file is linked to $library"
    done
    symbols=$(nm -D --undefined-only "$file" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u)
    [ "$(grep -c '^gst_' <<<"$symbols")" -gt 20 ] || fail "$file has no functions of GStreamer"
    for symbol in $(comm -12 <(cat <<<"$symbols") <(cat <<<"$newer")); do
        fail "$file is linked to $symbol, which is newer than GStreamer 1.14"
    done
    plugin=$(basename "$file" .so)
    for symbol in $(nm -D --defined-only "$file" | grep -o 'gst_plugin_.*' | grep -v "^gst_plugin_${plugin#libgst}_" || true); do
        fail "$file exports $symbol"
    done
    highest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1)
    [ -z "$glibc" ] || [ "$(printf '%s\n' "${highest#GLIBC_}" "$glibc" | sort -V | tail -n 1)" = "$glibc" ] ||
        fail "$file needs $highest"
    echo "$file: $(grep -c '^gst_' <<<"$symbols") functions of GStreamer 1.14, $(wc -w <<<"$libraries") libraries, $highest"
done
exit $status
