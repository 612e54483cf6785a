// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the files that properties name.
//!
//! In: a path and a maximum size. Out: the bytes of a regular file. Directories, FIFOs, devices and sockets are
//! refused: reading a FIFO may block, and reading a device may never end.

mod text;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

pub use text::text;

/// The reason why a file was not read. The caller puts the path before the message.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages are the documentation")]
pub enum FileError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is no regular file, too large, or no text in UTF-8.
    #[error("{0}")]
    Content(String),
}

/// Reads the regular file at `path`.
///
/// # Errors
/// If the file cannot be read, has more than `max_size` bytes, or is not a regular file (for example a directory, a
/// device, a FIFO or a socket).
pub fn read(path: &Path, max_size: u64) -> Result<Vec<u8>, FileError> {
    // Check before opening the file: opening a FIFO blocks until another process opens it for writing.
    check(&std::fs::metadata(path)?, max_size)?;
    let file = File::open(path)?;
    // Check again: the path may have been changed to name another file in the meantime.
    check(&file.metadata()?, max_size)?;
    let mut bytes = Vec::new();
    // The size that the file system reports is not a limit: a file can grow, and files of procfs report 0.
    file.take(max_size.saturating_add(1)).read_to_end(&mut bytes)?;
    check_size(bytes.len() as u64, max_size)?;
    Ok(bytes)
}

/// Reads the regular text file at `path`, without a byte order mark.
///
/// # Errors
/// The errors of [`read`] and of [`text`].
pub fn read_text(path: &Path, max_size: u64) -> Result<String, FileError> {
    Ok(text(&read(path, max_size)?)?.to_owned())
}

fn check(metadata: &Metadata, max_size: u64) -> Result<(), FileError> {
    if !metadata.is_file() {
        let kind = file_kind(metadata);
        return Err(FileError::Content(format!("is {kind}; expected a regular file")));
    }
    check_size(metadata.len(), max_size)
}

fn check_size(size: u64, max_size: u64) -> Result<(), FileError> {
    match size > max_size {
        true => Err(FileError::Content(format!("has {size} bytes; expected at most {max_size}"))),
        false => Ok(()),
    }
}

/// Names the kind of a file that is not a regular file, for an error message.
fn file_kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a FIFO";
        } else if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        } else if kind.is_socket() {
            return "a socket";
        }
    }
    "not a file"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(path: &Path, max_size: u64) -> String {
        read(path, max_size).unwrap_err().to_string()
    }

    /// Creates a file with this content at a path that no other test uses.
    fn file(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("nmsfilter-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_file_of_the_largest_size_is_read_and_one_byte_more_is_refused() {
        let path = file("largest", b"abcd");
        assert_eq!(read(&path, 4).unwrap(), b"abcd");
        assert_eq!(message(&path, 3), "has 4 bytes; expected at most 3");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_missing_file_is_distinguished_from_an_unreadable_one() {
        let missing = message(Path::new("/nowhere/labels.txt"), 1);
        assert_eq!(missing, "cannot be read: No such file or directory (os error 2)");
        let unreadable = message(Path::new("/dev/null/labels.txt"), 1);
        assert_eq!(unreadable, "cannot be read: Not a directory (os error 20)");
    }

    #[test]
    fn directories_and_devices_are_refused_and_named() {
        assert_eq!(message(Path::new("/tmp"), 1), "is a directory; expected a regular file");
        assert_eq!(message(Path::new("/dev/zero"), 1), "is a device; expected a regular file");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_limit_holds_for_a_procfs_file_that_reports_size_zero() {
        let path = Path::new("/proc/self/status");
        assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
        assert!(!read(path, 1 << 20).unwrap().is_empty());
        assert_eq!(message(path, 8), "has 9 bytes; expected at most 8");
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_without_a_writer_is_refused_without_blocking() {
        let path = std::env::temp_dir().join(format!("nmsfilter-{}-fifo", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let message = message(&path, 1 << 20);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(message, "is a FIFO; expected a regular file");
    }
}
