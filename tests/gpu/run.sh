#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs tests on a GPU with the folder that stage.sh made.
#
#   tests/gpu/run.sh FOLDER STEP...
#
#   all        every measurement of docs/developers/measurements.md, in less than 9 minutes; results are written to the folder
#              measurements in $OUT or FOLDER, which benches/measurements.py reads. Inference needs ORT_DYLIB_PATH,
#              Python and other programs are measured if PyTorch is there
#   SECTION    a section of nmsbench, such as kernels; results are in the same folder
#   suite      every test program with backend=cuda, except those that are separate steps
#   inference  the inference element; needs ONNX Runtime with CUDA at ORT_DYLIB_PATH
#   deepstream nmsfilter on DeepStream's metadata in device memory, with the stand-ins; times of batches
#   nvidia     NVIDIA's nvstreammux, nvinfer with recorded outputs, nvmsgconv, and the H.264 decoder, if stage.sh was
#              given a kit
#   nvidia_times  times of batches in nvinfer and in nmsfilter, in one pipeline
#   functions  checksums of the functions in kernels/functions.cuh, over all f32, and of pairs of boxes in
#              kernels/oriented.cuh; needs nvcc
#   scenes     random scenes, tensors on the GPU and on the host (NMSFILTER_TEST_SCENES, 100000)
#   faults     failures of the driver (NMSFILTER_TEST_FAULTS, 1000, with each backend)
#   soak       64 elements in one process (NMSFILTER_TEST_SECONDS, 300)
#   sanitize   compute-sanitizer's four tools on the tests of the engine, of merging, groups and pictures, and on the
#              kernels that nmsbench measures
#   occupied   time per frame with 1 to 16 free multiprocessors; needs nvcc
#   load       time per frame beside kernels that occupy the GPU for 20 to 1000 us each; needs nvcc
#
# Exit status: 0 if nothing failed. Needs an NVIDIA driver; functions needs nvcc, sanitize compute-sanitizer.
set -uo pipefail
[ $# -ge 2 ] || { sed -n '3,28s/^# \?//p' "$0" >&2; exit 2; }
folder=$(realpath "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=/tmp/nmsfilter-gpu
if [ ! -d "$work" ]; then
    mkdir -p "$work"
    tar -C "$work" -xJf "$folder/programs.tar.xz"
    [ ! -e "$folder/gstreamer.tar.xz" ] || tar -C "$work" -xJf "$folder/gstreamer.tar.xz"
    # The programs contain paths of the machine that built them.
    checkout=$(cat "$folder/checkout")
    [ -e "$checkout" ] || { mkdir -p "$(dirname "$checkout")" && ln -s "$PWD" "$checkout"; }
    mkdir -p "$(cat "$folder/scratch")"
fi
with=$(ls "$work"/*/run 2>/dev/null | head -1)
export NMSFILTER_TEST_DATA=$work/data$(cat "$folder/data-folder") NMSFILTER_TEST_BACKEND=cuda
export NMSFILTER_TEST_PLUGINS=$folder
results=${OUT:-$folder}/measurements
mkdir -p "$results"
failed=()

# program NAME [ARGUMENT...]: runs one test program, including the tests that are ignored without a
# GPU. Prints its summary, and its messages if it fails.
program() {
    local name=$1 log
    shift
    log=$(mktemp)
    if $with "$work/programs/$name" "$@" --include-ignored --nocapture >"$log" 2>&1; then
        printf '%s: ' "$name"
        grep -E '^test result' "$log"
        grep -iE '^(skip|[0-9]+ (scenes|runs|streams))' "$log" | sort | uniq -c
        grep -E '\|' "$log"
        if grep -q 'csv: ' "$log"; then
            sed -n 's/.*csv: //p' "$log" | tee "$results/$name.csv"
        fi
    else
        echo "$name: FAILED"
        grep -vE '^test .* ok$' "$log" | tail -30
        failed+=("$name")
    fi
    rm -f "$log"
}

# The programs run at one time, because each leaves most of the processors idle.
suite() {
    local name logs
    local -A running=()
    logs=$(mktemp -d)
    for name in $(ls "$work/programs"); do
        local only=()
        case $name in
            # Not tests.
            nmsbench | libtest_provider.so | nvidia-kit) continue ;;
            # It needs the stub driver.
            cuda_absent) continue ;;
            # Separate steps.
            cuda_faults | cuda_streams | inference | deepstream*) continue ;;
            # These use no GPU.
            messages_doc | parameters | property_texts | tracker) continue ;;
            # These tests need Python packages or an inference element.
            plugin) only=(--skip stock_decoders:: --skip stock_inference:: --skip half_precision::) ;;
        esac
        (
            failed=()
            program "$name" "${only[@]}" >"$logs/$name" 2>&1
            exit ${#failed[@]}
        ) &
        running[$name]=$!
    done
    for name in "${!running[@]}"; do
        wait "${running[$name]}" || failed+=("$name")
    done
    cat "$logs"/*
    rm -r "$logs"
}

inference() {
    if [ ! -e "${ORT_DYLIB_PATH-}" ]; then
        echo "inference: FAILED: ORT_DYLIB_PATH names no file; set it to the path of libonnxruntime.so"
        failed+=(inference)
        return
    fi
    # Some tests compare with NumPy and with ONNX Runtime's Python interface.
    if [ -z "${NMSFILTER_TEST_PYTHON-}" ] && python3 -c 'import numpy, onnxruntime' 2>/dev/null; then
        export NMSFILTER_TEST_PYTHON=python3
    fi
    # The pipelines need elements that the GStreamer of a GPU machine may lack.
    NMSFILTER_TEST_PROVIDER=cuda program inference --skip pipelines::
}

deepstream() {
    local libraries version
    for libraries in "$work"/programs/deepstream-[0-9]*; do
        version=${libraries##*-}
        [ "$version" != nvidia ] || version=91
        echo "stand-in ${libraries##*/deepstream-}"
        with_standin "$libraries" $version inside:: --skip inside::alone --skip inside::messages --test-threads 1
    done
    deepstream_times
}

# Times of batches, with NVIDIA's libraries if they are there.
deepstream_times() {
    local libraries
    libraries=$(ls -d "$work"/programs/deepstream-91* 2>/dev/null | tail -1)
    [ -z "$libraries" ] || with_standin "$libraries" 91 inside::alone::throughput
}

# with_standin FOLDER VERSION ARGUMENT...: runs the test program `deepstream` with these libraries.
with_standin() {
    LD_LIBRARY_PATH=$1 NMSFILTER_TEST_STANDIN=$1 NMSFILTER_TEST_DEEPSTREAM=${2:0:1}.${2:1} \
        program deepstream "${@:3}"
}

# kit FILTER...: runs the test program `deepstream` with NVIDIA's libraries and elements.
kit() {
    local kit=$work/programs/nvidia-kit
    if [ ! -d "$kit" ]; then
        echo "nvidia: FAILED: stage.sh needs NMSFILTER_NVIDIA_KIT, the folder of a kit (tests/nvidia/build.sh)"
        failed+=(nvidia)
        return
    fi
    # NVIDIA's libraries must be found by their names, too.
    LD_LIBRARY_PATH=$work/programs/deepstream-kit:$kit/lib \
        NMSFILTER_TEST_STANDIN=$work/programs/deepstream-kit NMSFILTER_TEST_DEEPSTREAM=9.1 \
        NMSFILTER_NVIDIA_KIT=$kit USE_NEW_NVSTREAMMUX=yes LIBV4L2_PLUGIN_DIR=$kit/lib/v4l_plugins \
        NMSFILTER_TEST_NVSTREAMMUX=$kit/plugins/libnvdsgst_multistream.so \
        program deepstream "$@" --test-threads 1
}

nvidia() {
    kit inside::nvinfer inside::nvstreammux inside::cameras
}

nvidia_times() {
    kit inside::alone::nvinfer
}

functions() {
    checksums functions all
    checksums oriented
}

# checksums NAME ARGUMENT...: compares the output of tests/gpu/NAME.cu with the expected output.
checksums() {
    local name=$1 expected=tests/fixtures/$1/checksums.txt
    if nvcc -std=c++17 -O2 "tests/gpu/$name.cu" -o "$work/$name" &&
        "$work/$name" "${@:2}" | diff "$expected" -; then
        echo "$(wc -l <"$expected") checksums of $name are equal"
    else
        echo "functions: FAILED: expected the checksums in $expected"
        failed+=(functions)
    fi
}

scenes() {
    NMSFILTER_TEST_SCENES=${NMSFILTER_TEST_SCENES:-100000} program cuda tensors_in_ each_image_of_a_batch
}

faults() {
    NMSFILTER_TEST_FAULTS=${NMSFILTER_TEST_FAULTS:-1000} program cuda_faults
}

soak() {
    NMSFILTER_TEST_STREAMS=${NMSFILTER_TEST_STREAMS:-64} \
        NMSFILTER_TEST_SECONDS=${NMSFILTER_TEST_SECONDS:-300} program cuda_streams
}

# section NAME: a section of nmsbench.
section() {
    timeout 200 $with "$work/programs/nmsbench" --out "$results" "$1" || failed+=("nmsbench $1")
}

# The most important figures come first, in case the time is short.
all() {
    local name
    cp "$folder/commit" "$results"
    date -u +%F >"$results/date"
    for name in candidates kernels growth element streams oriented masks merging; do
        timed "$name" section "$name"
    done
    timed start start
    if python3 -c 'import torchvision' 2>/dev/null; then
        timed peers peers
        [ ! -d "$folder/python" ] || timed python in_python
    else
        echo "SKIPPED: peers and python: there is no torchvision"
    fi
    timed deepstream deepstream_times
    if [ -e "${ORT_DYLIB_PATH-}" ]; then
        timed chain section chain
        timed tiles section tiles
    else
        echo "SKIPPED: inference: ORT_DYLIB_PATH names no file"
    fi
    rm -f "$results"/*.f32
}

start() {
    GST_PLUGIN_PATH=$folder python3 benches/start.py "$results" $with || failed+=(start)
}

peers() {
    python3 benches/peers/nms.py "$results" || failed+=(peers)
}

in_python() {
    PYTHONPATH=$folder/python python3 python/tests/gpu.py --csv "$results/python.csv" || failed+=(python)
}

sanitize() {
    local tool out
    for tool in memcheck racecheck initcheck synccheck; do
        for what in engine merging kernels; do
            if [ $what = merging ]; then
                out=$(NMSFILTER_TEST_FEWER=20 timeout 300 $with compute-sanitizer --tool $tool --error-exitcode 9 \
                    --print-limit 5 "$work/programs/cuda" merging groups pictures --include-ignored --test-threads 1 2>&1)
            elif [ $what = engine ]; then
                out=$(NMSFILTER_TEST_SCENES=40 timeout 580 $with compute-sanitizer --tool $tool --error-exitcode 9 \
                    --print-limit 5 "$work/programs/cuda" tensors_in_ batch:: rounds_is more_conflicts --skip memory:: \
                    --include-ignored --test-threads 1 2>&1)
            else
                out=$(timeout 200 $with compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 5 \
                    "$work/programs/nmsbench" --out "$work/bench" --once kernels batches 2>&1)
            fi
            if [ $? = 0 ]; then
                echo "$tool, $what: $(grep 'SUMMARY' <<<"$out")"
            else
                echo "$tool, $what: FAILED"
                tail -25 <<<"$out"
                failed+=("$tool $what")
            fi
        done
    done
}

# paced NAME=VALUE...: prints the time per frame for 500 frames at 50 frames per second, in a
# process with these variables.
paced() {
    env GST_PLUGIN_PATH="$folder" "$@" $with gst-launch-1.0 -m crowdtestsrc num-buffers=500 decoder=yolov8 memory=cuda \
        ! video/x-raw,framerate=50/1 ! nmsfilter backend=cuda ! fakesink sync=true 2>&1 |
        sed -n 's/.*time-p50=(guint64)\([0-9]*\), time-p99=(guint64)\([0-9]*\).*/p50 \1 ns, p99 \2 ns/p' | tail -1
}

# preload NAME: builds the library NAME from the folder, for use with LD_PRELOAD.
preload() {
    if ! nvcc -O2 -arch=native -Xcompiler -fPIC -shared "$folder/$1.cu" -o "$work/$1.so" -lcudart; then
        echo "$1: FAILED: expected $1.cu in the folder, from NMSFILTER_TEST_DATA/tools, and nvcc"
        failed+=("$1")
        return 1
    fi
}

occupied() {
    local free
    preload gpu-occupy || return
    for free in 1 2 4 8 16; do
        # The multiprocessors are occupied for most of the ten seconds.
        echo "$free multiprocessors: $(paced LD_PRELOAD="$work/gpu-occupy.so" FREE_SM=$free WAIT_MS=3000 HOLD_S=8)"
    done
}

load() {
    local us
    preload gpu-filler || return
    echo "no load: $(paced)"
    for us in 20 50 200 1000; do
        echo "kernels of $us us: $(paced LD_PRELOAD="$work/gpu-filler.so" FILL_US=$us)"
    done
}

# timed NAME COMMAND...
timed() {
    local began=$SECONDS
    echo "=== $1"
    "${@:2}"
    echo "=== $1: $((SECONDS - began)) s"
}

for step in "$@"; do
    if [ "$(type -t "$step")" = function ]; then
        timed "$step" "$step"
    else
        timed "$step" section "$step"
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "nothing failed"
