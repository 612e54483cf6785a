#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# play.sh NAME [VARIABLE=VALUE ...]: plays pipelines/NAME.launch with gst-launch-1.0 -m. Without NAME it
# lists the pipelines; if a variable has no value, it lists those of the pipeline. The plugins must be
# built: ./pipelines/demo.sh does that.
#
# The first line of a .launch file says what it shows. Comments below it declare variables, "NAME: meaning"
# or "NAME=DEFAULT: meaning". In the description $NAME is replaced by the value; a word $NAME by the words
# of the value.
set -euo pipefail
folder=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

usage() {
    echo "usage: play.sh NAME [VARIABLE=VALUE ...], where NAME is one of" >&2
    local file
    for file in "$folder"/*.launch; do
        printf '  %-18s %s\n' "$(basename "$file" .launch)" "$(sed -n '1s/^# //p' "$file")" >&2
    done
    exit 2
}

# Prints what is wrong, and the variables of the pipeline.
refuse() {
    echo "$1; $name has the variables" >&2
    sed -n '2,$s/^# /  /p' "$file" >&2
    exit 2
}

name=${1-} file=$folder/${1-}.launch
[ -f "$file" ] || usage
shift

declare -A value=()
declared=$'^# ([a-z]+)(=([^ ]*))?: '
variables=()
while read -r line; do
    if [[ $line =~ $declared ]]; then
        variables+=("${BASH_REMATCH[1]}")
        [ -z "${BASH_REMATCH[2]}" ] || value[${BASH_REMATCH[1]}]=${BASH_REMATCH[3]}
    fi
done < <(tail -n +2 "$file")
for setting in "$@"; do
    [[ " ${variables[*]-} " == *" ${setting%%=*} "* && $setting == *=* ]] ||
        refuse "there is no variable for $setting"
    value[${setting%%=*}]=${setting#*=}
done
for variable in "${variables[@]}"; do
    [ -n "${value[$variable]+set}" ] || refuse "$variable has no value"
done

# gst-launch takes a description as words, as a shell would split them.
read -r -d '' -a pieces < <(grep -v '^#' "$file") || true
words=()
for piece in "${pieces[@]}"; do
    if [[ $piece == '$'* ]]; then
        read -r -a split <<<"${value[${piece#'$'}]}"
        words+=("${split[@]}")
    elif [[ $piece == *'=$'* ]]; then
        words+=("${piece%%'$'*}${value[${piece#*'$'}]}")
    else
        words+=("$piece")
    fi
done

built=${CARGO_TARGET_DIR:-$folder/../target}/release
export GST_PLUGIN_PATH=${GST_PLUGIN_PATH-$built}
exec gst-launch-1.0 -m "${words[@]}"
