#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# picture.sh: runs in a root where the plugins are installed, or are named by GST_PLUGIN_PATH.
# GStreamer must find both elements. A face detector and `nmsfilter` must find as many faces in a
# picture as other programs. ORT_DYLIB_PATH names ONNX Runtime's library. NMSFILTER_TEST_DATA is the
# folder of test inputs; without it, there is no picture.
set -eu
export GST_REGISTRY=/tmp/registry.bin
for element in nmsfilter ortinference; do
    gst-inspect-1.0 "$element" | grep -E '^ *(Filename|Version) '
done
if gst-inspect-1.0 --exists crowdtestsrc; then
    echo "elements for tests are installed" >&2
    exit 1
fi

data=${NMSFILTER_TEST_DATA:?}
if [ ! -d "$data" ]; then
    echo "there are no test inputs in $data: no picture"
    exit 0
fi
gst-launch-1.0 -m filesrc location="$data/data/images/crowd_selfie.jpg" ! decodebin ! videoconvert \
    ! videoflip video-direction=auto ! ortinference model="$data/data/models/version-RFB-640.onnx" letterbox=none provider=cpu \
    ! nmsfilter score-threshold=0.25 ! fakesink >/tmp/messages 2>&1 || { cat /tmp/messages; exit 1; }
survivors=$(sed -n 's/.*nmsfilter-stats.* survivors=(guint64)\([0-9]*\).*/\1/p' /tmp/messages)
echo "faces in the picture: $survivors"
# Other programs find 266 faces. JPEG decoders and versions of ONNX Runtime round differently.
[ "$survivors" -ge 250 ] && [ "$survivors" -lt 280 ]
