//! Failures of the driver on demand, and an account of what it has been asked for: for tests.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A failure to come.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The driver's function that fails.
    pub call: &'static str,
    /// How many calls of it succeed first.
    pub after: usize,
    /// How many fail then; `usize::MAX` for all.
    pub times: usize,
    /// What it returns.
    pub code: u32,
}

static PENDING: AtomicUsize = AtomicUsize::new(0);
static INJECTED: AtomicU32 = AtomicU32::new(0);

static OUTSTANDING: AtomicI64 = AtomicI64::new(0);

/// What is asked for, and how it is given back.
const ACQUIRE_RELEASE: [(&str, &str); 10] = [
    ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"),
    ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"),
    ("cuModuleLoadData", "cuModuleUnload"),
    ("cuMemAlloc_v2", "cuMemFree_v2"),
    ("cuMemHostAlloc", "cuMemFreeHost"),
    ("cuStreamCreate", "cuStreamDestroy_v2"),
    ("cuStreamCreateWithPriority", "cuStreamDestroy_v2"),
    ("cuEventCreate", "cuEventDestroy_v2"),
    ("cuGraphCreate", "cuGraphDestroy"),
    ("cuGraphInstantiateWithFlags", "cuGraphExecDestroy"),
];

/// How much has been asked for and not been given back: contexts, memory, streams, graphs.
pub fn outstanding() -> i64 {
    OUTSTANDING.load(Ordering::SeqCst)
}

/// Notes that `call` has succeeded.
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

/// Replaces all failures to come.
pub fn inject(planned: &[Fault]) {
    let mut faults = faults();
    *faults = planned.to_vec();
    PENDING.store(faults.len(), Ordering::SeqCst);
    INJECTED.store(0, Ordering::SeqCst);
}

/// How many calls have failed since [`inject`].
pub fn injected() -> u32 {
    INJECTED.load(Ordering::SeqCst)
}

/// What `call` is to return, if it is to fail.
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
