//! Panics and criticals, which fail a case wherever they come from.

use std::backtrace::Backtrace;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use gst::glib;

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether GObject's warnings are expected: it warns where a property is given a value that it
/// refuses. Newer versions call that critical.
pub static EXPECT_WARNINGS: AtomicBool = AtomicBool::new(false);

/// Notes panics of any thread, and what GLib and GStreamer say of programming errors.
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

/// What was noted since this was called last.
pub fn take() -> Vec<String> {
    std::mem::take(&mut *SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}
