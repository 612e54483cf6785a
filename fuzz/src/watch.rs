// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records panics, and GLib's criticals and warnings, from any thread. Each of them fails the
//! current case.

use std::backtrace::Backtrace;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use gst::glib;

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// True while warnings from GObject are expected: it warns if a property is set to a value of the
/// wrong type. Newer versions log this as critical.
pub static EXPECT_WARNINGS: AtomicBool = AtomicBool::new(false);

/// Installs a panic hook, and a log handler for GLib.
pub fn install() {
    std::panic::set_hook(Box::new(|panic| {
        note(format!("panic: {panic}\n{}", Backtrace::force_capture()));
    }));
    glib::log_set_default_handler(|domain, level, text| {
        let expected = domain == Some("GLib-GObject") && EXPECT_WARNINGS.load(Ordering::SeqCst);
        let matters = matches!(
            level,
            glib::LogLevel::Error | glib::LogLevel::Critical | glib::LogLevel::Warning
        );
        if matters && !expected {
            note(format!("{level:?} of {}: {text}", domain.unwrap_or("GLib")));
        }
    });
}

fn note(what: String) {
    eprintln!("{what}");
    SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(what);
}

/// Removes and returns everything that was recorded since the last call.
pub fn take() -> Vec<String> {
    std::mem::take(&mut *SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}
