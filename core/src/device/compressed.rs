// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels in the library, compressed by `build.rs`.
//!
//! In: a file of kernels, as PTX or machine code. Out: its bytes, for the driver to load. They are decompressed once in
//! a process, when they are first needed. A program that does not refer to a file is linked without it.

use std::ffi::CStr;
use std::sync::OnceLock;

/// A compressed file of kernels.
#[derive(Debug)]
pub struct CompressedKernels {
    compressed: &'static [u8],
    bytes: OnceLock<Vec<u8>>,
}

impl CompressedKernels {
    pub(crate) const fn new(compressed: &'static [u8]) -> Self {
        Self { compressed, bytes: OnceLock::new() }
    }

    /// The bytes of the file and a terminating zero, which the driver expects after PTX.
    ///
    /// # Panics
    /// If the bytes are not those that `build.rs` has compressed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get_or_init(|| {
            let mut bytes = miniz_oxide::inflate::decompress_to_vec(self.compressed)
                .expect("build.rs has compressed it");
            bytes.push(0);
            bytes
        })
    }

    /// The text of PTX.
    ///
    /// # Panics
    /// If the file has machine code.
    pub fn ptx(&self) -> &CStr {
        CStr::from_bytes_with_nul(self.bytes()).expect("PTX is text")
    }
}

/// The kernels of a file that `build.rs` has compressed.
macro_rules! compressed_kernels {
    ($file:literal) => {
        $crate::device::CompressedKernels::new(include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $file,
            ".deflate"
        )))
    };
}

pub(crate) use compressed_kernels;

/// `kernels/resample.cu`, which makes a model's input of a frame.
pub static RESAMPLE: CompressedKernels = compressed_kernels!("resample.sm_60.ptx");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompressed_ptx_is_the_file_that_was_compressed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/ptx/resample.sm_60.ptx");
        let file = std::fs::read(path).unwrap();
        assert_eq!(RESAMPLE.ptx().to_bytes(), file);
        // A second call returns this memory and does not decompress again.
        assert_eq!(RESAMPLE.ptx().as_ptr(), RESAMPLE.ptx().as_ptr());
    }
}
