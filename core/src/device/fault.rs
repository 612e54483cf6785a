// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes driver calls fail in tests (feature `fault-injection`).
//!
//! In: the calls that are to fail, and how. Out: the number of injected failures, and the number of resources that
//! were acquired but not released.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A planned failure.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The name of the driver's function that fails.
    pub call: &'static str,
    /// The number of calls that succeed before the first failure.
    pub after: usize,
    /// The number of calls that fail; `usize::MAX` stands for all further calls.
    pub times: usize,
    /// The result code of a failing call, a `CUresult`.
    pub code: u32,
}

static PENDING: AtomicUsize = AtomicUsize::new(0);
static INJECTED: AtomicU32 = AtomicU32::new(0);

static OUTSTANDING: AtomicI64 = AtomicI64::new(0);

/// The functions that acquire a resource, each with the function that releases it.
const ACQUIRE_RELEASE: [(&str, &str); 11] = [
    ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"),
    ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"),
    ("cuModuleLoadData", "cuModuleUnload"),
    ("cuMemAlloc_v2", "cuMemFree_v2"),
    ("cuMemHostAlloc", "cuMemFreeHost"),
    ("cuMemHostRegister_v2", "cuMemHostUnregister"),
    ("cuStreamCreate", "cuStreamDestroy_v2"),
    ("cuStreamCreateWithPriority", "cuStreamDestroy_v2"),
    ("cuEventCreate", "cuEventDestroy_v2"),
    ("cuGraphCreate", "cuGraphDestroy"),
    ("cuGraphInstantiateWithFlags", "cuGraphExecDestroy"),
];

/// Returns the number of resources (contexts, modules, memory, streams, events, graphs) that were acquired but not
/// released.
pub fn outstanding() -> i64 {
    OUTSTANDING.load(Ordering::SeqCst)
}

/// Records that `call` succeeded.
pub(super) fn record(call: &str) {
    if ACQUIRE_RELEASE.iter().any(|(acquire, _)| *acquire == call) {
        OUTSTANDING.fetch_add(1, Ordering::SeqCst);
    } else if ACQUIRE_RELEASE.iter().any(|(_, release)| *release == call) {
        OUTSTANDING.fetch_sub(1, Ordering::SeqCst);
    }
}

fn faults() -> MutexGuard<'static, Vec<Fault>> {
    static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces all planned failures, and resets the count of injected failures.
pub fn inject(planned: &[Fault]) {
    let mut faults = faults();
    *faults = planned.to_vec();
    PENDING.store(faults.len(), Ordering::SeqCst);
    INJECTED.store(0, Ordering::SeqCst);
}

/// Returns the number of failures that were injected since the last call of [`inject`].
pub fn injected() -> u32 {
    INJECTED.load(Ordering::SeqCst)
}

/// Returns the result code with which `call` is to fail, or `None` if it is not to fail.
pub(super) fn injected_code(call: &str) -> Option<u32> {
    if PENDING.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let mut faults = faults();
    let fault = faults.iter_mut().find(|fault| fault.call == call && fault.times > 0)?;
    if fault.after > 0 {
        fault.after -= 1;
        return None;
    }
    if fault.times != usize::MAX {
        fault.times -= 1;
    }
    INJECTED.fetch_add(1, Ordering::SeqCst);
    Some(fault.code)
}
