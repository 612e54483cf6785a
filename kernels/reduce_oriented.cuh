// SPDX-License-Identifier: MIT OR Apache-2.0
// Reduce for oriented boxes. In and out: see reduce.cuh. The candidates' rectangles are a further
// input, which is read if a conflict list is incomplete. reduce.cuh explains the assumptions about
// forward progress.
#pragma once

#include "overlap_oriented.cuh"
#include "reduce.cuh"

struct OrientedConflicts : ConflictsBySlot<OrientedConflicts> {
    // True if the candidates conflict. `higher` outranks `lower`.
    static DEVICE bool conflict(const Workspace &workspace, const RankedCandidate &higher,
                                const RankedCandidate &lower, const OverlapRule &rule) {
        return classes_conflict(higher.class_index, lower.class_index, rule) &&
               may_conflict(higher.box, lower.box, workspace.rectangle[higher.slot].shape.z,
                            workspace.rectangle[lower.slot].shape.z, rule) &&
               rectangles_conflict(load_rectangle(workspace, higher.slot),
                                   load_rectangle(workspace, lower.slot), rule);
    }
};

KERNEL(REDUCE_THREADS, 1) reduce_oriented(void *workspaces, uint64_t stride) {
    reduce_candidates<OrientedConflicts, true>(workspaces, stride);
}
