// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records panics and GLib's criticals and warnings, of any thread; each fails the current case.

use std::backtrace::Backtrace;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use gst::glib;

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether GObject's warnings are expected: it warns when a property is set to a value of the wrong type.
/// Newer versions log that as critical.
pub static EXPECT_WARNINGS: AtomicBool = AtomicBool::new(false);

/// Installs a panic hook and a log handler of GLib.
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

/// Removes and returns what was recorded since the last call.
pub fn take() -> Vec<String> {
    std::mem::take(&mut *SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}
