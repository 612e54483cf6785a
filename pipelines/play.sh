#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# play.sh NAME: plays pipelines/NAME.launch with gst-launch-1.0 -m; without NAME, lists what there
# is. The plugin must be built: ./pipelines/demo.sh does that, or cargo build --release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

file=pipelines/${1-}.launch
if [ $# -ne 1 ] || [ ! -f "$file" ]; then
    echo "usage: pipelines/play.sh NAME, where NAME is one of" >&2
    for file in pipelines/*.launch; do
        name=$(basename "$file" .launch)
        printf '  %-14s %s\n' "$name" "$(sed -n '1s/^# //p' "$file")" >&2
    done
    exit 2
fi
export GST_PLUGIN_PATH=${GST_PLUGIN_PATH-${CARGO_TARGET_DIR:-target}/release}
# gst-launch takes a description as words, as a shell would split them.
read -r -d '' -a words < <(grep -v '^#' "$file") || true
exec gst-launch-1.0 -m "${words[@]}"
