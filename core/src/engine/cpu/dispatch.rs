// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the instruction set at run time.
//!
//! In: work whose functions are `#[inline(always)]`. On x86-64 it is compiled twice: for the target's base instruction
//! set and for AVX2.

/// A function with its arguments.
pub(super) trait Work {
    /// Does the work with the instruction set of the caller; implementations are `#[inline(always)]`.
    fn run(self);
}

/// Does the work with AVX2 if the processor has it.
pub(super) fn dispatch<W: Work>(work: W) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn with_avx2<W: Work>(work: W) {
            work.run();
        }
        // SAFETY: the processor has AVX2, which is the only feature that the function requires.
        return unsafe { with_avx2(work) };
    }
    work.run();
}
