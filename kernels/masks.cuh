// SPDX-License-Identifier: MIT OR Apache-2.0
// Masks: coefficients x prototypes > 0. In: the candidates and their decisions by
// rank, and the tensors of coefficients and prototypes. Out: the bits of the survivors' masks, in
// memory that the host reads. The rules are in core/src/engine/mod.rs; core/src/engine/masks
// computes identical areas.
//
// Every block looks for survivors among MASK_THREADS ranks at a time, and finds the position of
// each survivor's words with a prefix sum. The words of all survivors are then shared among the
// warps of all blocks. Each lane computes the logit of one pixel, and a ballot of the warp gives a
// word.
//
// The interface of the kernels:
//
//   kernel              blocks per group  parameters
//   masks, frame_masks  any number        workspace, stride, masks, words
//
// `masks` is a MaskParams, by value, and `words` a uint32_t *; interface.cuh describes the other
// parameters. Blocks have MASK_THREADS threads. The kernel is launched between reduce and publish.
// Publish begins after the kernel has ended, so it stores its sequence number after all masks are
// visible to the host. `masks` computes masks in pixels of the prototypes, and `frame_masks` in
// pixels of the frame; both handle any number of groups.
//
// The words of group i begin at words[i * capacity], and contain the masks of its survivors in the
// order of ranks. A mask consists of rows of bits, most significant bit first. Each row is padded
// to whole bytes, and each mask to whole words. Words beyond `capacity` are not written, nor are
// masks with a word beyond `limit`. The host computes the number of words from the survivors, and
// runs the images again with a greater capacity if needed.
#pragma once

#include "layout.cuh"
#include "workspace.cuh"

#define MASK_WARPS (MASK_THREADS / WARP)
// Consecutive words that a warp computes and stores together: a sector of memory.
#define MASK_WORDS_PER_RUN 8u

// The pixels that a mask covers.
struct MaskArea {
    uint32_t left, top, width, height;

    // The number of bytes in a row.
    DEVICE uint32_t stride() const { return (width + 7) / 8; }
    DEVICE uint32_t words() const { return (height * stride() + 3) / 4; }
};

// The survivors among MASK_THREADS ranks. A rank without words has no mask.
struct MaskList {
    uint64_t end[MASK_THREADS]; // the words of the group up to and including this mask
    MaskArea area[MASK_THREADS];
    uint32_t warp_words[MASK_WARPS];
    uint32_t warp_survivors[MASK_WARPS];
};

// The smallest integer that is at least `number`, limited to the range 0 to `limit`; 0 for NaN.
DEVICE uint32_t limited_ceiling(float number, uint32_t limit) {
    if (!(number > 0.0f)) {
        return 0;
    }
    if (number >= float(limit)) {
        return limit;
    }
    const uint32_t whole = uint32_t(number);
    return whole + (float(whole) < number);
}

// Determines which pixels the masks of an image have.
DEVICE MaskPlaceParams mask_place(const MaskParams &params, uint32_t image) {
    const MaskPlaceParams &all = params.place;
    MaskPlaceParams place = {
        {all.ratio[0], all.ratio[1]},   {all.offset[0], all.offset[1]},
        {all.step[0], all.step[1]},     {all.origin[0], all.origin[1]},
        {all.factor[0], all.factor[1]}, {all.frame_size[0], all.frame_size[1]}};
    if (params.places != 0) {
        const MaskPlaceParams &own = ((const MaskPlaceParams *)params.places)[image];
#pragma unroll
        for (uint32_t axis = 0; axis < 2; axis++) {
            place.ratio[axis] = __ldg(&own.ratio[axis]);
            place.offset[axis] = __ldg(&own.offset[axis]);
            place.step[axis] = __ldg(&own.step[axis]);
            place.origin[axis] = __ldg(&own.origin[axis]);
            place.factor[axis] = __ldg(&own.factor[axis]);
            place.frame_size[axis] = __ldg(&own.frame_size[axis]);
        }
    }
    return place;
}

// The pixels of a box from edge `low` to edge `high`, along an axis.
template <bool IsFrame>
DEVICE void mask_span(const MaskParams &params, const MaskPlaceParams &place, uint32_t axis,
                      float low, float high, uint32_t &first, uint32_t &count) {
    uint32_t end;
    if (IsFrame) {
        const uint32_t size = place.frame_size[axis];
        const auto edge = [&](float of_box) {
            double frame = (double(of_box) - place.offset[axis]) / place.ratio[axis];
            if (!(frame > 0.0)) {
                return 0u;
            }
            frame = frame < double(size) ? frame : double(size);
            const float single = float(frame);
            const uint32_t whole = uint32_t(single);
            return whole + (single - float(whole) >= 0.5f);
        };
        first = min(edge(low), size - 1);
        end = min(max(edge(high), first + 1), size);
    } else {
        const uint32_t size = params.prototype_size[axis];
        const auto edge = [&](float of_box) {
            const double scaled = mul_rn(double(of_box), place.ratio[axis]);
            const float model = float(add_rn(scaled, place.offset[axis]));
            return limited_ceiling(mul_rn(model, place.factor[axis]), size);
        };
        first = edge(low);
        end = edge(high);
    }
    count = end > first ? end - first : 0;
}

template <bool IsFrame>
DEVICE MaskArea mask_area(const MaskParams &params, const MaskPlaceParams &place,
                          const float4 &box) {
    MaskArea area;
    mask_span<IsFrame>(params, place, 0, box.x, box.z, area.left, area.width);
    mask_span<IsFrame>(params, place, 1, box.y, box.w, area.top, area.height);
    return area;
}

// The two columns or rows of the prototypes that a pixel of the frame lies between.
struct MaskSample {
    uint32_t first, second;
    float weight; // of the second

    DEVICE MaskSample(const MaskParams &params, const MaskPlaceParams &place, uint32_t axis,
                      uint32_t pixel) {
        const uint32_t last = params.prototype_size[axis] - 1;
        const float scaled = mul_rn(add_rn(float(pixel), 0.5f), place.step[axis]);
        float position = add_rn(scaled, place.origin[axis]);
        position = position > 0.0f ? position : 0.0f;
        position = position < float(last) ? position : float(last);
        first = uint32_t(position);
        second = min(first + 1, last);
        weight = sub_rn(position, float(first));
    }
};

DEVICE float interpolated(float a, float b, float weight) {
    return add_rn(a, mul_rn(sub_rn(b, a), weight));
}

// The prototypes of an image, for one element type. The kernel has separate code for each type,
// because a loop that handles all types needs more registers than a thread has.
template <typename Element> struct Prototypes {
    typedef typename Element::Stored Stored;
    const Stored *first;
    uint64_t pixel_stride, channel_stride;
    bool is_quantized;
    float scale, zero_point;

    DEVICE explicit Prototypes(const LayoutNumbers &numbers)
        : first((const Stored *)numbers.first), pixel_stride(numbers.anchor_stride),
          channel_stride(numbers.component_stride), is_quantized(numbers.is_quantized != 0),
          scale(numbers.scale), zero_point(numbers.zero_point) {}

    DEVICE float number(Stored stored) const {
        const float element = Element::to_float(stored);
        return is_quantized ? mul_rn(sub_rn(element, zero_point), scale) : element;
    }
};

// The coefficients of a survivor. Each lane holds one of WARP coefficients.
struct MaskCoefficients {
    const LayoutField &field;
    const uint32_t image, anchor, channels;
    uint32_t first; // the first channel held; equal to channels: none held
    float held;

    DEVICE MaskCoefficients(const MaskParams &params, uint32_t group, uint32_t image,
                            uint32_t anchor)
        : field(params.coefficients[group]), image(image), anchor(anchor),
          channels(params.channels), first(params.channels), held(0.0f) {}

    // The logits of N pixels of the prototypes. All lanes of the warp take part.
    template <uint32_t N, typename Element>
    DEVICE void logits(const Prototypes<Element> &prototypes, const uint32_t (&pixels)[N],
                       float (&sums)[N]) {
        typedef typename Element::Stored Stored;
        const uint32_t step = N == 1 ? 8 : 2;
        const Stored *at[N];
#pragma unroll
        for (uint32_t i = 0; i < N; i++) {
            sums[i] = 0.0f;
            at[i] = prototypes.first + pixels[i] * prototypes.pixel_stride;
        }
#pragma unroll 1
        for (uint32_t channel = 0; channel < channels; channel += step) {
            if (channel % WARP == 0 && channel != first) {
                first = channel;
                const LayoutNumbers numbers(field, image);
                held = numbers.load(anchor, min(channel + lane_index(), channels - 1));
            }
            Stored stored[N][step];
#pragma unroll
            for (uint32_t j = 0; j < step; j++) {
                // Beyond the end, load the last channel again rather than branch.
                const uint64_t offset = min(j, channels - 1 - channel) * prototypes.channel_stride;
#pragma unroll
                for (uint32_t i = 0; i < N; i++) {
                    stored[i][j] = __ldg(at[i] + offset);
                }
            }
#pragma unroll
            for (uint32_t j = 0; j < step; j++) {
                const float coefficient = __uint_as_float(
                    __shfl_sync(ALL_LANES, __float_as_uint(held), (channel + j) % WARP));
                if (channel + j < channels) {
#pragma unroll
                    for (uint32_t i = 0; i < N; i++) {
                        const float product = mul_rn(coefficient, prototypes.number(stored[i][j]));
                        sums[i] = add_rn(sums[i], product);
                    }
                }
            }
#pragma unroll
            for (uint32_t i = 0; i < N; i++) {
                at[i] += step * prototypes.channel_stride;
            }
        }
    }
};

// Word `index` of a mask.
template <bool IsFrame, typename Element>
DEVICE uint32_t mask_word(const MaskParams &params, const MaskPlaceParams &place,
                          const Prototypes<Element> &prototypes, MaskCoefficients &coefficients,
                          const MaskArea &area, uint32_t index) {
    // Each lane computes one bit of the word. The most significant bit of a byte is its first
    // pixel.
    const uint32_t lane = lane_index();
    const uint32_t byte = index * 4 + lane / 8, stride = area.stride();
    const uint32_t row = byte / stride;
    const uint32_t column = (byte - row * stride) * 8 + (lane % 8 ^ 7);
    const bool is_pixel = row < area.height && column < area.width;
    // Lanes without a pixel compute any pixel of the mask, because all lanes must take part.
    const uint32_t x = area.left + (is_pixel ? column : 0), y = area.top + (is_pixel ? row : 0);
    const uint32_t width = params.prototype_size[0];
    float logit;
    if (IsFrame) {
        const MaskSample h(params, place, 0, x), v(params, place, 1, y);
        const uint32_t pixels[4] = {v.first * width + h.first, v.first * width + h.second,
                                    v.second * width + h.first, v.second * width + h.second};
        float corners[4];
        coefficients.logits(prototypes, pixels, corners);
        const float upper = interpolated(corners[0], corners[1], h.weight);
        const float lower = interpolated(corners[2], corners[3], h.weight);
        logit = interpolated(upper, lower, v.weight);
    } else {
        const uint32_t pixels[1] = {y * width + x};
        float sums[1];
        coefficients.logits(prototypes, pixels, sums);
        logit = sums[0];
    }
    return __ballot_sync(ALL_LANES, is_pixel && logit > 0.0f);
}

// Computes this warp's share of a group's words from `begin` up to but excluding `end`. The words
// belong to the masks in `list`, whose first rank is `first_rank`.
template <bool IsFrame, typename Element>
DEVICE void write_mask_words(const MaskParams &params, const Workspace &workspace,
                             const MaskList &list, uint32_t first_rank, const GroupIndices &indices,
                             uint64_t begin, uint64_t end, uint32_t *words) {
    const uint32_t lane = lane_index();
    // Neighboring runs go to different blocks, so that even few words use all multiprocessors.
    const uint64_t warps = uint64_t(gridDim.x) * MASK_WARPS;
    uint64_t run = begin / MASK_WORDS_PER_RUN + warp_index() * gridDim.x + blockIdx.x;
#pragma unroll 1
    for (; run * MASK_WORDS_PER_RUN < end; run += warps) {
        const uint64_t from = run * MASK_WORDS_PER_RUN;
        uint32_t kept = 0; // the word that this lane stores
        bool is_kept = false;
        uint64_t word = from < begin ? begin : from;
        const uint64_t last = from + MASK_WORDS_PER_RUN < end ? from + MASK_WORDS_PER_RUN : end;
#pragma unroll 1
        while (word < last) {
            // Find the first mask that ends after the word.
            uint32_t low = 0, high = MASK_THREADS - 1;
#pragma unroll 1
            while (low < high) {
                const uint32_t middle = (low + high) / 2;
                if (list.end[middle] > word) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            const MaskArea area = list.area[low];
            const uint64_t mask_end = list.end[low];
            const uint64_t mask_begin = mask_end - area.words();
            const uint64_t until = mask_end < last ? mask_end : last;
            if (mask_end > params.limit) {
                break; // all later masks are beyond the limit, too
            }
            const ImageAnchor of(indices, workspace.ranked[first_rank + low].index);
            uint32_t group = 0;
#pragma unroll
            for (uint32_t g = 1; g < MAX_GROUPS; g++) {
                group += g < params.group_count && of.anchor >= params.first_anchor[g];
            }
            MaskCoefficients coefficients(params, group, of.image,
                                          of.anchor - params.first_anchor[group]);
            const Prototypes<Element> prototypes{LayoutNumbers(params.prototypes, of.image)};
            const MaskPlaceParams place = mask_place(params, of.image);
#pragma unroll 1
            for (; word < until; word++) {
                const uint32_t bits = mask_word<IsFrame>(params, place, prototypes, coefficients,
                                                         area, uint32_t(word - mask_begin));
                const bool is_own = lane == uint32_t(word - from);
                kept = is_own ? bits : kept;
                is_kept |= is_own;
            }
        }
        if (is_kept) {
            words[from + lane] = kept;
        }
    }
}

template <bool IsFrame>
DEVICE void write_masks(void *workspaces, uint64_t stride, const MaskParams &params,
                        uint32_t *words_of_groups) {
    BLOCK_SHARED(MaskList, list);
    grid_dependency_wait();
    const Header *const header = group_header<true>(workspaces, stride);
    const uint32_t candidates = ranked_count(header);
    const uint32_t max_detections = header->params.max_detections;
    const GroupIndices indices(header);
    const Workspace workspace((Header *)header, header->params.capacity);
    const uint32_t lane = lane_index(), warp = warp_index();
    uint32_t *const words = words_of_groups + uint64_t(blockIdx.y) * params.capacity;

    uint32_t survivors = 0; // among the ranks before
    uint64_t total = 0;     // the words of their masks
#pragma unroll 1
    for (uint64_t from = 0; from < candidates; from += MASK_THREADS) {
        const uint64_t rank = from + threadIdx.x;
        bool survives = rank < candidates &&
                        Decision{workspace.decision_by_rank[rank]}.kind() == Decision::SURVIVES;
        const uint32_t votes = __ballot_sync(ALL_LANES, survives);
        if (lane == 0) {
            list.warp_survivors[warp] = __popc(votes);
        }
        __syncthreads();
        uint32_t position = survivors + lanes_before(votes);
#pragma unroll
        for (uint32_t w = 0; w < MASK_WARPS; w++) {
            const uint32_t count = list.warp_survivors[w];
            position += w < warp ? count : 0;
            survivors += count;
        }
        survives = survives && (max_detections == 0 || position < max_detections);
        MaskArea area = {};
        if (survives) {
            const RankedCandidate &survivor = workspace.ranked[rank];
            const ImageAnchor of(indices, survivor.index);
            area = mask_area<IsFrame>(params, mask_place(params, of.image), survivor.box);
        }
        // Above the limit the exact number of words has no effect. Clamping keeps a warp's sum
        // within 32 bits.
        uint32_t inclusive_sum = min(area.words(), params.limit + 1);
#pragma unroll
        for (uint32_t distance = 1; distance < WARP; distance *= 2) {
            const uint32_t below = __shfl_up_sync(ALL_LANES, inclusive_sum, distance);
            inclusive_sum += lane >= distance ? below : 0;
        }
        if (lane == WARP - 1) {
            list.warp_words[warp] = inclusive_sum;
        }
        __syncthreads();
        uint64_t end = total + inclusive_sum;
        const uint64_t begin = total;
#pragma unroll
        for (uint32_t w = 0; w < MASK_WARPS; w++) {
            const uint32_t count = list.warp_words[w];
            end += w < warp ? count : 0;
            total += count;
        }
        list.end[threadIdx.x] = end;
        list.area[threadIdx.x] = area;
        __syncthreads();
        const uint64_t written = total < params.capacity ? total : params.capacity;
        with_element(params.prototypes.element, [&](auto type) {
            write_mask_words<IsFrame, decltype(type)>(params, workspace, list, uint32_t(from),
                                                      indices, begin, written, words);
        });
        if (total >= params.limit || (max_detections != 0 && survivors >= max_detections)) {
            break;
        }
        __syncthreads();
    }
}

KERNEL(MASK_THREADS, 1)
masks(void *workspaces, uint64_t stride, const MaskParams params, uint32_t *words) {
    write_masks<false>(workspaces, stride, params, words);
}
KERNEL(MASK_THREADS, 1)
frame_masks(void *workspaces, uint64_t stride, const MaskParams params, uint32_t *words) {
    write_masks<true>(workspaces, stride, params, words);
}
