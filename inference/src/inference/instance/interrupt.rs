// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends an element's waits for a shared model.
//!
//! In: a flush or a change of state, on another thread. Out: the element's thread continues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::{Shared, lock};

/// True if an element's waits are at an end. The batch that has the element's pictures then runs without further
/// pictures, and the element enters no other.
#[derive(Default)]
pub struct Interrupt {
    is_set: AtomicBool,
    /// The instance in which the element waits. An element that changes to the CPU has another one.
    shared: Mutex<Weak<Shared>>,
}

impl Interrupt {
    /// Ends the present wait, and later ones until [`clear`](Self::clear) is called.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        let shared = lock(&self.shared).upgrade();
        if let Some(shared) = shared {
            // A thread that holds this lock has seen the flag, or waits when it is notified.
            drop(lock(&shared.state));
            shared.changed.notify_all();
        }
    }

    /// Allows waits again.
    pub fn clear(&self) {
        self.is_set.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Names the instance whose waits end.
    pub(super) fn attach(&self, shared: &Arc<Shared>) {
        *lock(&self.shared) = Arc::downgrade(shared);
    }
}
