// The kernels' interface: what the host passes, what it gets, how much memory it provides.
//
// One frame is four launches on one stream, each over what the one before left in the workspace:
//
//   kernel                blocks                                   parameters, in order
//   decode_<B>_<S>        decode_blocks(params.anchors, .lanes_per_anchor) KernelParams by value, void *workspace
//   or decode_multi_<B>_<S>  decode_multi_blocks(.anchors, .classes)  the same
//   map                   map_blocks(multiprocessors, capacity)    void *workspace
//   reduce                reduce_blocks(multiprocessors, capacity) void *workspace
//   publish               1                                        void *workspace, Outcome *outcome
//
// <B> and <S> are the element types, f32 or f16, of the tensor that holds the boxes and of that
// which holds the scores (and objectness). Which of the two decodes is as frame.multi_label says:
// the first makes a candidate of an anchor's best class, the second of every pair of anchor and
// class that reaches its threshold; anchors times classes fit in 32 bits then. Blocks are of DECODE_THREADS, MAP_THREADS,
// REDUCE_THREADS and PUBLISH_THREADS; none takes dynamic shared memory. The three later kernels
// read the frame's numbers from the workspace, where decode leaves them: a CUDA graph of the four
// is instantiated once per shape, and only decode's parameters change with the frame. `map` and
// `reduce` are right with any number of blocks from 1 up. Compiled for compute capability 9.0 and
// up, the three later ones wait by themselves for the end of the one before (take_turn,
// portable.cuh), and may be launched with programmatic dependence on it.
//
// The workspace is device memory of workspace_bytes(capacity) bytes, aligned to 256, where capacity
// is not less than frame.capacity: how many candidates there is memory for. Without multi_label
// frame.capacity is not less than frame.anchors. With it there can be more candidates: the later
// kernels then do nothing but report how many there are, in Outcome::candidates, with no survivors,
// and the host runs the frame again with a workspace for as many. Workspace and outcome are for the
// same capacity, and map and reduce take the number of blocks that goes with it. The first HEADER_BYTES bytes must be zero before the
// first frame; `publish` makes them ready for the next. After a launch that failed, zero them again.
// (Lanes load words of the rest that nobody wrote, and do not look at them: to please checkers of
// such loads, zero all of it once.)
//
// The outcome may be device memory or mapped host memory of outcome_bytes(capacity) bytes, aligned
// to 16. `sequence` is written last, after everything else is visible to the host: a host that
// waits for it to become Frame::sequence, which is 1 in every frame of the plugin, reads a whole
// outcome.
//
// Survivors, their order and their bits depend on the tensors and the frame alone.
#pragma once

#if defined(__CUDACC_RTC__) || defined(NMSFILTER_FREESTANDING)
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

#if defined(__CUDACC__) || defined(__CUDA__)
#define NMSFILTER_BOTH __host__ __device__
#else
#define NMSFILTER_BOTH
#endif

// Threads of a block.
#define DECODE_THREADS 256
#define MAP_THREADS 512
#define REDUCE_THREADS 512
#define PUBLISH_THREADS 1024

// How numbers make a box (src/head/layout.rs).
enum : uint32_t { CORNERS = 0, CENTER = 1, SQUARE = 2 };
// Which candidates survive (src/engine/params.rs).
enum : uint32_t { GREEDY = 0, MAP_REDUCE = 1, NONE = 2 };
// When two boxes overlap too much.
enum : uint32_t { IOU = 0, REPRESENTATIVE = 1, SMALLER = 2 };

// Number c of anchor a is element a * anchor_stride + c * component_stride from the address.
struct Field {
    uint64_t address;          // device address of number 0 of anchor 0; 0 where there is no field
    uint64_t anchor_stride;    // in elements
    uint64_t component_stride; // in elements
};

// All that a frame's kernels are told. Plain data, 8-byte aligned, no padding, 192 bytes.
struct KernelParams {
    Field boxes;
    Field scores;
    Field objectness;          // of the scores' element type; address 0: none
    uint64_t class_thresholds; // device address of `listed` floats, by class; 0 where listed is 0
    uint32_t class_threshold_count;           // classes with a threshold of their own
    float threshold;           // of all other classes
    float lowest_threshold;    // the lowest of any of the layout's classes
    uint32_t anchors;
    uint32_t classes;
    uint32_t lanes_per_anchor; // threads that share an anchor: lanes_for(classes)
    uint32_t box_format;
    float scale[2];
    float min_size[2];
    float max_size[2];
    uint32_t method;
    uint32_t overlap;
    float iou_threshold;
    float pixel_offset;
    uint32_t threshold_inclusive; // 0 or 1
    uint32_t class_agnostic;      // 0 or 1
    uint32_t max_candidates;      // 0: all
    uint32_t max_detections;      // 0: all
    uint32_t sequence;            // not 0; given back in Outcome::sequence
    float visible[4];             // left, top, right, bottom: boxes that do not intersect it are rejected
    uint32_t multi_label;         // 0 or 1
    uint32_t capacity;            // candidates that there is memory for
};

// src/engine/mod.rs: Detection
struct Detection {
    float x1, y1, x2, y2;
    float score;
    uint32_t class_index;
    uint32_t anchor;
};

// What the host gets; `survivors` detections follow, 28 bytes each.
struct ResultHeader {
    uint32_t sequence;   // Frame::sequence, written last
    uint32_t candidates; // before any cap
    uint32_t rejected;
    uint32_t survivors;  // the detections that follow, by rank
    uint32_t rounds;     // the longest chain of decisions that waited for one another; a figure of
                         // this run, which may differ from run to run
    uint32_t nanoseconds; // from decode's beginning, by the device's clock, which some GPUs advance
                          // once in a microsecond only
    uint32_t reserved[2];
};

static_assert(sizeof(Field) == 24 && sizeof(KernelParams) == 192, "src/engine/cuda mirrors it");
static_assert(sizeof(Detection) == 28 && sizeof(ResultHeader) == 32, "src/engine/cuda mirrors it");

// Threads that share an anchor: few scores are read by one.
NMSFILTER_BOTH constexpr uint32_t lanes_per_anchor(uint32_t classes) { return classes < 8 ? 1 : 8; }

NMSFILTER_BOTH constexpr uint32_t decode_blocks(uint32_t anchors, uint32_t lanes) {
    return anchors == 0 ? 1 : uint32_t((uint64_t(anchors) * lanes + DECODE_THREADS - 1) / DECODE_THREADS);
}

// A thread to a pair of anchor and class.
NMSFILTER_BOTH constexpr uint32_t decode_multi_blocks(uint32_t anchors, uint32_t classes) {
    return decode_blocks(anchors, classes);
}

// A block to a multiprocessor, so that each reads all candidates once.
NMSFILTER_BOTH constexpr uint32_t map_blocks(uint32_t multiprocessors, uint32_t capacity) {
    return capacity == 0 ? 1 : capacity < multiprocessors ? capacity : multiprocessors;
}

// A warp to a candidate, but no more than run at a time.
NMSFILTER_BOTH constexpr uint32_t reduce_blocks(uint32_t multiprocessors, uint32_t capacity) {
    const uint32_t warps = REDUCE_THREADS / 32, wanted = (capacity + warps - 1) / warps;
    return wanted == 0 ? 1 : wanted < 2 * multiprocessors ? wanted : 2 * multiprocessors;
}

// The workspace: a header, and arrays of this many bytes per candidate (workspace.cuh), whose number is
// rounded up to a multiple of 4096.
#define HEADER_BYTES 512
#define BYTES_PER_CANDIDATE 324
NMSFILTER_BOTH constexpr uint64_t padded(uint32_t capacity) {
    return (uint64_t(capacity) + 4095) / 4096 * 4096;
}
NMSFILTER_BOTH constexpr uint64_t workspace_bytes(uint32_t capacity) {
    return HEADER_BYTES + padded(capacity) * BYTES_PER_CANDIDATE;
}
NMSFILTER_BOTH constexpr uint64_t results_bytes(uint32_t capacity) {
    return sizeof(ResultHeader) + (uint64_t(capacity) * sizeof(Detection) + 15) / 16 * 16;
}
