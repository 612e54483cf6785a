// SPDX-License-Identifier: MIT OR Apache-2.0
// The module that the plugin loads. Four kernels make one launch of a CUDA graph (interface.cuh):
//
//   decode    tensors -> candidates
//   map       candidates -> ranks, and conflicts with candidates of higher rank
//   reduce    ranks and conflicts -> decisions
//   publish   decisions -> survivors, by rank
//
// The last three kernels exist for a single group of images, and as map_batch, reduce_batch and
// publish_batch for several. Decode exists for plain layouts, whose boxes and scores are final, and
// as decode_layout for all others. publish_columns replaces publish for layouts whose survivors
// carry further numbers along; indices writes the anchors of published survivors to device memory.
// Layouts of oriented boxes use decode_oriented, map_oriented and
// reduce_oriented. For layouts with prototypes, masks (or frame_masks) is launched between reduce
// and publish:
//
//   masks     decisions, coefficients and prototypes -> the bits of survivors' masks
//
// Map compares all pairs, which takes too long for many candidates. If a group has more candidates
// than a limit, kernels between reduce and publish sort its candidates by rank and by position, cut
// them into chunks, and compare each candidate with its neighbors (sort.cuh, chunk.cuh,
// reduce_chunk.cuh).
//
// Methods that merge boxes, lower scores, or read a column have further kernels before masks and
// publish (merge_params.cuh), which replace boxes, scores and decisions by rank.
//
// The candidates are the vertices of the conflict graph. Two candidates are adjacent if they
// conflict: the overlap of their boxes exceeds the threshold, and their classes conflict.
// Candidates are totally ordered: by score, then by anchor. Greedy non-maximum suppression takes
// candidates in this order and keeps each one that conflicts with no candidate kept before. The
// result is the lexicographically first maximal independent set of the conflict graph, which reduce
// computes in parallel (Blelloch, Fineman, Shun: Greedy sequential maximal independent set and
// matching are parallel on average, SPAA 2012):
//
//   all candidates are undecided
//   repeat, in rounds, until all are decided
//       for each undecided candidate c, in parallel
//           if one that outranks c and conflicts with c survives:   c is suppressed
//           else if all that outrank c and conflict with c are suppressed:   c survives
//
// A candidate is undominated if no candidate that outranks it conflicts with it. The first round
// decides that all undominated candidates survive. The number of rounds is the dependency depth of
// the graph. Rounds need no barrier, because a decision is final and depends on final decisions
// only: reduce decides a candidate once it knows the decisions that the candidate depends on.
//
// method=map-reduce ends after the first round, and suppresses every candidate that is dominated.
// This is the single pass of Oro, Fernandez, Martorell and Hernando (Work-Efficient Parallel
// Non-Maximum Suppression Kernels, The Computer Journal, 2020), with ties broken by anchor.
#include "decode.cuh"
#include "map.cuh"
#include "reduce.cuh"
#include "publish.cuh"
#include "decode_layout.cuh"
#include "publish_columns.cuh"
#include "masks.cuh"
#include "decode_oriented.cuh"
#include "map_oriented.cuh"
#include "reduce_oriented.cuh"
#include "sort.cuh"
#include "chunk.cuh"
#include "reduce_chunk.cuh"
#include "merge_boxes.cuh"
#include "rescore.cuh"
#include "by_column.cuh"
#include "indices.cuh"
