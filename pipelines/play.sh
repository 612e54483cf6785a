#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# play.sh [-m] NAME [VARIABLE=VALUE ...]: plays pipelines/NAME.launch with gst-launch-1.0, and
# prints what was found and written. With -m, it prints all messages of gst-launch-1.0 -m instead.
# Without NAME, it lists the pipelines. If a variable has no value, it lists the pipeline's
# variables. The plugins must have been built, which ./pipelines/demo.sh does.
#
# The first line of a .launch file says what the pipeline shows. The comments below it declare
# variables, as "NAME: meaning" or "NAME=DEFAULT: meaning". In the description, $NAME is replaced by
# the value. If a word consists of $NAME only, it is replaced by all words of the value. A value for
# $output must have the extension of the default, because this format is written.
set -euo pipefail
folder=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

usage() {
    echo "usage: play.sh [-m] NAME [VARIABLE=VALUE ...], where NAME is one of" >&2
    local file
    for file in "$folder"/*.launch; do
        printf '  %-18s %s\n' "$(basename "$file" .launch)" "$(sed -n '1s/^# //p' "$file")" >&2
    done
    exit 2
}

# Prints the mistake, and the variables of the pipeline.
refuse() {
    echo "$1; $name has the variables" >&2
    sed -n '2,$s/^# /  /p' "$file" >&2
    exit 2
}

all_messages=
if [ "${1-}" = -m ]; then
    all_messages=yes
    shift
fi
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
written=${value[output]-}
for setting in "$@"; do
    [[ " ${variables[*]-} " == *" ${setting%%=*} "* && $setting == *=* ]] ||
        refuse "there is no variable for $setting"
    value[${setting%%=*}]=${setting#*=}
done
for variable in "${variables[@]}"; do
    [ -n "${value[$variable]+set}" ] || refuse "$variable has no value"
done

output=${value[output]-}
ending=${output##*/} ending=${ending##*.}
if [[ ${output##*/} == *.* && ${ending,,} != "${written##*.}" ]]; then
    refuse "output=$output: expected a name that ends in .${written##*.}, the format that $name writes"
fi

# The pipelines for videos cannot write a single picture.
if [ "$name" = detect-file ] && [[ -f ${value[input]} && -r ${value[input]} ]]; then
    case $(head -c 4 "${value[input]}" | od -An -tx1) in
    ' ff d8 ff '* | ' 89 50 4e 47')
        refuse "input=${value[input]}: expected a video, got a picture; play detect-picture instead"
        ;;
    esac
fi

# Prints the direction in which videoflip turns the JPEG file $1 upright, if its EXIF data contain
# one. In GStreamer, jpegparse reads these data, but it is not part of the base and good plugins.
exif_direction() {
    local bytes entry orientation
    bytes=$(head -c 65536 "$1" | od -An -v -tx1 | tr -d '\n')
    [[ $bytes == ' ff d8 '* ]] || return 0
    # Finds the first entry of the tag 0x0112 that is a single short, after the byte order.
    case $bytes in
    *' 45 78 69 66 00 00 4d 4d 00 2a '*) entry=' 01 12 00 03 00 00 00 01 00 0' ;;
    *' 45 78 69 66 00 00 49 49 2a 00 '*) entry=' 12 01 03 00 01 00 00 00 0' ;;
    *) return 0 ;;
    esac
    bytes=${bytes#*' 45 78 69 66 00 00 '}
    [[ $bytes == *"$entry"* ]] || return 0
    orientation=${bytes#*"$entry"} orientation=${orientation:0:1}
    [[ $orientation == [1-8] ]] || return 0
    local directions=('' identity horiz 180 vert ul-lr 90r ur-ll 90l)
    echo "${directions[orientation]}"
}

# Opening a FIFO would block until there is a writer.
if [[ -f ${value[input]-} && -r ${value[input]} ]]; then
    if [[ ${value[direction]-} == auto ]]; then
        direction=$(exif_direction "${value[input]}")
        value[direction]=${direction:-auto}
    fi
    # By default, decodebin uses jpegdec with its fast transform.
    if [[ ${value[decoder]-} == auto && $(head -c 3 "${value[input]}" | od -An -tx1) == ' ff d8 ff' ]]; then
        value[decoder]='jpegdec idct-method=islow'
    fi
fi
[[ ${value[decoder]-} != auto ]] || value[decoder]=decodebin

# gst-launch takes a description as words, split like in a shell.
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

# A file that the pipeline reads must not be written under any name (-ef compares device and inode).
if [ -n "$output" ]; then
    for variable in "${variables[@]}"; do
        [ "$variable" != output ] || continue
        read -r -a split <<<"${value[$variable]}"
        for read_file in "${value[$variable]}" "${split[@]#*=}"; do
            if [ "${read_file#file://}" -ef "$output" ]; then
                refuse "output=$output: expected another file than those that are read; it is the same as $read_file"
            fi
        done
    done
fi

built=${CARGO_TARGET_DIR:-$folder/../target}/release
if [ -z "${GST_PLUGIN_PATH+set}" ] && ! [ -e "$built/libgstnmsfilter.so" ] &&
    ! gst-inspect-1.0 --exists nmsfilter 2>/dev/null; then
    echo "the plugins are not built: run ./pipelines/demo.sh first, or set GST_PLUGIN_PATH to their folder" >&2
    exit 1
fi
export GST_PLUGIN_PATH=${GST_PLUGIN_PATH-$built}
[ -z "$all_messages" ] || exec gst-launch-1.0 -m "${words[@]}"

# Prints the number in the field $2 of the structure $1.
number() {
    local rest=${1#*" $2=(guint64)"}
    echo "${rest%%[,;]*}"
}

# Prints the entries of the array $2 in the structure $1, one per line.
entries() {
    local rest=${1#*" $2="}
    rest=${rest#*'<'} rest=${rest%%' >'*}
    rest=${rest# }
    [ -n "$rest" ] || return 0
    rest=${rest//, /$'\n'}
    # Strings have quotes if they need them, and special characters follow a backslash.
    printf '%b\n' "$rest" | sed 's/^"\(.*\)"$/\1/; s/\\\(.\)/\1/g'
}

# Prints the counts in the structure nmsfilter-stats $1.
summary() {
    local labels counts index frames survivors missing text
    frames=$(number "$1" frames) survivors=$(number "$1" survivors)
    missing=$(number "$1" frames-without-tensors)
    mapfile -t labels < <(entries "$1" labels)
    mapfile -t counts < <(entries "$1" label-counts)
    text="$survivors objects"
    [ "$frames" = 1 ] || text="$frames frames, $text"
    for index in "${!labels[@]}"; do
        [ "$index" -gt 0 ] && text+=", " || text+=" ("
        text+="${labels[index]} ${counts[index]}"
    done
    [ ${#labels[@]} = 0 ] || text+=")"
    [ "$missing" = 0 ] || text+=", $missing of $frames frames without tensors"
    echo "$text"
}

# Reads the messages of gst-launch-1.0. Prints warnings, and a line for each nmsfilter element.
report() {
    trap '' INT
    local line
    while read -r line; do
        case $line in
        WARNING:*) echo "$line" >&2 ;;
        'Got message '*' nmsfilter-stats, '*) summary "$line" ;;
        esac
    done
}

# An interrupt ends gst-launch-1.0, which closes its file (-e), and afterwards this script. C.UTF-8
# makes the messages English, as `report` expects them.
trap : INT
status=0
found=$(LC_ALL=C.UTF-8 gst-launch-1.0 -e -m "${words[@]}" | report) || status=$?
[ "$status" = 0 ] || exit "$status"
[ -z "$output" ] || printf 'wrote %s: ' "$output"
echo "${found:-no frames}"
