// Decide: which candidates survive. Map, reduce and all rounds to the fixpoint are one kernel.
//
// A warp takes a candidate and looks at those that outrank it. A greedy candidate is suppressed as
// soon as one that meets it is known to survive, and survives once all that meet it are known to
// be suppressed; until then its warp looks again at their states. Candidates are handed out by
// rank, and each depends on higher ranks only, which are in the hands of warps that run already.
// So the highest-ranked undecided one can always be decided, and no warp waits for ever, however
// few blocks the device runs at a time. What is decided does not depend on who comes first.
#pragma once

#include "workspace.cuh"

// When a candidate suppresses another: the frame's rules, for registers.
struct Rule {
    uint32_t method, overlap, inclusive, class_agnostic;
    float threshold, offset;

    DEVICE explicit Rule(const Frame &frame)
        : method(frame.method), overlap(frame.overlap), inclusive(frame.threshold_inclusive),
          class_agnostic(frame.class_agnostic), threshold(frame.iou_threshold),
          offset(frame.pixel_offset) {}
};

struct Ranked {
    float4 box;
    float area;
    uint32_t class_index;
};

DEVICE Ranked ranked_at(const Workspace &workspace, uint32_t rank) {
    Ranked ranked;
    ranked.box = __ldg(&workspace.box[rank]);
    ranked.area = __ldg(&workspace.area[rank]);
    ranked.class_index = __ldg(&workspace.class_index[rank]);
    return ranked;
}

// Whether `higher`, which outranks `lower`, suppresses it.
DEVICE bool meet(const Ranked &higher, const Ranked &lower, const Rule &rule) {
    const float width = plus(
        minus(fminf(higher.box.z, lower.box.z), fmaxf(higher.box.x, lower.box.x)), rule.offset);
    const float height = plus(
        minus(fminf(higher.box.w, lower.box.w), fmaxf(higher.box.y, lower.box.y)), rule.offset);
    const float intersection = times(width, height);
    float whole = minus(plus(higher.area, lower.area), intersection);
    if (rule.overlap != IOU) {
        whole = rule.overlap == SMALLER ? fminf(higher.area, lower.area) : higher.area;
    }
    const float limit = times(rule.threshold, whole);
    const bool too_much = rule.inclusive ? intersection >= limit : intersection > limit;
    const bool concerned = higher.class_index == lower.class_index || rule.class_agnostic != 0;
    return concerned && width > 0.0f && height > 0.0f && too_much;
}

// Where warps of a block that share a candidate come to terms.
struct Team {
    uint32_t clear; // how many found nothing that suppresses it
    uint32_t chain; // the longest chain among what they waited for
};

DEVICE void survive(const Workspace &workspace, uint32_t rank, uint32_t chain) {
    show(&workspace.state[rank], SURVIVES | chain << CHAIN_SHIFT);
    atomicOr(&workspace.alive[rank / 32], 1u << rank % 32);
    if (chain > 1) {
        atomicMax(&workspace.header->rounds, chain);
    }
}

// What a warp knows of the `Tile` candidates that it decides.
template <uint32_t Tile> struct Hand {
    Ranked own[Tile];
    uint32_t pending[Tile]; // bit g: this lane's candidate of the window's group g meets it
    uint32_t chain[Tile];   // the longest chain that this lane has seen; the candidate's, once decided
    uint32_t open;          // bit t: not known to be suppressed
};

template <uint32_t Tile>
DEVICE void suppress(const Workspace &workspace, Hand<Tile> &hand, uint32_t first, uint32_t t,
                     uint32_t chain) {
    hand.open &= ~(1u << t);
    hand.chain[t] = chain;
    if (lane_index() == 0) {
        show(&workspace.state[first + t], SUPPRESSED | chain << CHAIN_SHIFT);
    }
}

// Looks once at the state of one pending candidate per lane.
template <uint32_t Tile>
DEVICE void inspect(const Workspace &workspace, const Rule &rule, Hand<Tile> &hand, uint32_t first,
                    uint32_t t, uint32_t window, uint32_t parts) {
    uint32_t seen = SUPPRESSED;
    if (hand.pending[t] != 0) {
        if (rule.method == MAP_REDUCE) {
            seen = SURVIVES | 1u << CHAIN_SHIFT; // as good as: it counts, whatever becomes of it
        } else {
            const uint32_t group = window + (__ffs(hand.pending[t]) - 1) * parts;
            seen = look(&workspace.state[group * WARP + lane_index()]);
            if ((seen & DECISION) == SUPPRESSED) {
                hand.pending[t] &= hand.pending[t] - 1;
                hand.chain[t] = greater(hand.chain[t], seen >> CHAIN_SHIFT);
            }
        }
    }
    const uint32_t by = __ballot_sync(ALL_LANES, (seen & DECISION) == SURVIVES);
    if (by != 0) {
        const uint32_t chain = __shfl_sync(ALL_LANES, seen >> CHAIN_SHIFT, __ffs(by) - 1);
        suppress(workspace, hand, first, t, chain);
    }
}

// Groups of 32 candidates that a warp looks at between two looks at states: as many as registers
// hold without spilling.
template <uint32_t Tile> NMSFILTER_BOTH constexpr uint32_t groups_at_once() { return Tile == 1 ? 4 : 2; }

// Decides the `count` candidates from rank `first` on, at most `Tile`; each candidate looked at is
// compared with all of them. Where `parts` warps share them (Tile is 1 then), this is number
// `part`, which looks at every `parts`-th group; `team` is theirs.
template <uint32_t Tile>
DEVICE void settle(const Workspace &workspace, const Rule &rule, uint32_t first, uint32_t count,
                   uint32_t part, uint32_t parts, Team *team) {
    constexpr uint32_t GROUPS_AT_ONCE = groups_at_once<Tile>();
    const uint32_t lane = lane_index();
    Hand<Tile> hand;
    hand.open = (1u << count) - 1;
#pragma unroll
    for (uint32_t t = 0; t < Tile; t++) {
        hand.own[t] = ranked_at(workspace, t < count ? first + t : first);
        hand.pending[t] = 0;
        hand.chain[t] = 0;
    }

    const uint32_t groups = rule.method == NONE ? 0 : (first + WARP - 1) / WARP;
    for (uint32_t window = part; window < groups; window += WARP * parts) {
        for (uint32_t step = 0; step < WARP && window + step * parts < groups;
             step += GROUPS_AT_ONCE) {
            Ranked others[GROUPS_AT_ONCE];
#pragma unroll
            for (uint32_t k = 0; k < GROUPS_AT_ONCE; k++) {
                const uint32_t j = (window + (step + k) * parts) * WARP + lane;
                others[k] = ranked_at(workspace, j < first ? j : 0);
            }
            // While these are on their way: what has become of those found before, and has a
            // partner found one that suppresses it?
            const bool settled =
                parts > 1 && (look(&workspace.state[first]) & DECISION) == SUPPRESSED;
#pragma unroll
            for (uint32_t t = 0; t < Tile; t++) {
                if (hand.open >> t & 1) {
                    inspect(workspace, rule, hand, first, t, window, parts);
                }
            }
            if (hand.open == 0 || __any_sync(ALL_LANES, settled)) {
                return;
            }
#pragma unroll
            for (uint32_t k = 0; k < GROUPS_AT_ONCE; k++) {
                const uint32_t j = (window + (step + k) * parts) * WARP + lane;
#pragma unroll
                for (uint32_t t = 0; t < Tile; t++) {
                    if (j < first && meet(others[k], hand.own[t], rule)) {
                        hand.pending[t] |= 1u << (step + k);
                    }
                }
            }
        }
        // Wait for those of this window that are undecided: the masks are needed again.
#pragma unroll
        for (uint32_t t = 0; t < Tile; t++) {
            while ((hand.open >> t & 1) && __any_sync(ALL_LANES, hand.pending[t] != 0)) {
                const uint32_t before = hand.pending[t];
                const bool settled =
                    parts > 1 && (look(&workspace.state[first]) & DECISION) == SUPPRESSED;
                inspect(workspace, rule, hand, first, t, window, parts);
                if (__any_sync(ALL_LANES, settled)) {
                    return;
                }
                if (!__any_sync(ALL_LANES, hand.pending[t] != before)) {
                    rest();
                }
            }
            hand.pending[t] = 0;
        }
        if (hand.open == 0) {
            return;
        }
    }

    // Nothing that outranks them all suppresses those that are still open: now among themselves.
    uint32_t survivors = 0;
#pragma unroll
    for (uint32_t t = 0; t < Tile; t++) {
        if (!(hand.open >> t & 1)) {
            continue;
        }
        uint32_t chain = 0;
        if (__any_sync(ALL_LANES, hand.chain[t] != 0)) {
            chain = warp_max(hand.chain[t]);
        }
        bool suppressed = false;
        if (rule.method != NONE) {
#pragma unroll
            for (uint32_t k = 0; k < t; k++) {
                if (!suppressed && meet(hand.own[k], hand.own[t], rule)) {
                    suppressed = rule.method == MAP_REDUCE || (survivors >> k & 1) != 0;
                    chain = suppressed ? hand.chain[k] : greater(chain, hand.chain[k]);
                }
            }
        }
        if (suppressed) {
            suppress(workspace, hand, first, t, chain);
            continue;
        }
        hand.chain[t] = chain + 1;
        survivors |= 1u << t;
        if (lane != 0) {
            continue;
        }
        if (parts == 1) {
            survive(workspace, first + t, chain + 1);
            continue;
        }
        // The last of the partners to be done speaks for all.
        atomicMax(&team->chain, chain);
        __threadfence_block();
        if (atomicAdd(&team->clear, 1u) == parts - 1) {
            survive(workspace, first + t, atomicMax(&team->chain, 0u) + 1);
        }
    }
}

// Candidates that a warp decides together where there are many, so that it reads the others once
// for all of them.
#define TILE 2u

// What a block's warps share.
struct Turn {
    uint32_t first; // the rank that this turn begins with
    Team teams[WARPS];
};

// Blocks that a multiprocessor is to hold: with four, assemblers for older GPUs spill.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define DECIDE_BLOCKS 4
#else
#define DECIDE_BLOCKS 3
#endif

KERNEL(THREADS, DECIDE_BLOCKS) decide(void *memory) {
    BLOCK_SHARED(Turn, turn);
    Header *const header = (Header *)memory;
    const uint32_t count = contenders(header);
    const Workspace workspace(memory, header->frame.anchors);
    const Rule rule(header->frame);
    const uint32_t warps = gridDim.x * WARPS;

    if (count > warps / 2) {
        // Enough for every warp to work by itself, and where there is plenty, on several
        // candidates at a time.
        const uint32_t tile = count <= 2 * warps ? 1 : TILE;
        for (;;) {
            uint32_t first = 0;
            if (lane_index() == 0) {
                first = atomicAdd(&header->ticket, tile);
            }
            first = __shfl_sync(ALL_LANES, first, 0);
            if (first >= count) {
                return;
            }
            if (tile == 1) {
                settle<1>(workspace, rule, first, 1, 0, 1, nullptr);
            } else {
                settle<TILE>(workspace, rule, first, lesser(count - first, TILE), 0, 1, nullptr);
            }
        }
    }

    // Several warps of a block to a candidate, to fill the device and shorten the longest look.
    uint32_t parts = 2;
    while (parts < WARPS && count * parts * 2 <= warps) {
        parts *= 2;
    }
    const uint32_t per_turn = WARPS / parts, which = warp_index() / parts;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) {
            turn.first = atomicAdd(&header->ticket, per_turn);
        }
        if (threadIdx.x < WARPS) {
            turn.teams[threadIdx.x].clear = 0;
            turn.teams[threadIdx.x].chain = 0;
        }
        __syncthreads();
        const uint32_t first = turn.first;
        if (first >= count) {
            return;
        }
        if (first + which < count) {
            settle<1>(workspace, rule, first + which, 1, warp_index() % parts, parts,
                      &turn.teams[which]);
        }
    }
}
