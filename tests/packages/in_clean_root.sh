#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# in_clean_root.sh ROOT FOLDER COMMANDS: runs shell commands as root in a copy of ROOT
# (tests/roots/clean.sh). It contains nothing of this tree except the checks in /check. FOLDER has
# the files to test, and is mounted at /packages. ONNX Runtime (ORT_DYLIB_PATH) and the test inputs
# (NMSFILTER_TEST_DATA) are mounted, too. The commands can call `install PACKAGE...` and `refuse
# WHY`.
set -euo pipefail
root=$1 folder=$2 commands=$3
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source pipelines/setup.sh

data=()
[ ! -d "$NMSFILTER_TEST_DATA" ] || data=(ro "$NMSFILTER_TEST_DATA" /data)
# shellcheck disable=SC2016  # expanded by the shell in the root
functions='
refuse() { echo "$1" >&2; exit 1; }
install() {
    apt-get install --quiet=2 --yes --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >/tmp/apt.log 2>&1 ||
        { cat /tmp/apt.log; exit 1; }
}
if test -e "$tree" || command -v gst-inspect-1.0; then refuse "the root is not clean"; fi
'
as_root tests/roots/enter_copy.sh "$root" 0:0 "${data[@]}" \
    ro "$folder" /packages ro tests/packages /check ro "$(dirname "$ORT_DYLIB_PATH")" /onnxruntime \
    -- env PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive NMSFILTER_TEST_DATA=/data \
    ORT_DYLIB_PATH="/onnxruntime/${ORT_DYLIB_PATH##*/}" tree="$PWD" sh -ec "$functions$commands"
