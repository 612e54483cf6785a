// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels in the library, compressed by `build.rs`.
//!
//! In: a file of kernels, as PTX or machine code. Out: its bytes, for the driver to load. They are decompressed once in
//! a process, when they are first needed. A program that does not refer to a file is linked without it.
//!
//! Similar files take little more space than one: they are compressed with the first as their dictionary.

use std::ffi::{CStr, CString};
use std::io::Read;
use std::sync::OnceLock;

use lzma_rust2::Lzma2Reader;

/// A compressed file of kernels.
#[derive(Debug)]
pub struct CompressedKernels {
    compressed: &'static [u8],
    /// The compressed file without which this one cannot be decompressed.
    similar: Option<&'static [u8]>,
    bytes: OnceLock<Vec<u8>>,
}

impl CompressedKernels {
    pub(crate) const fn new(compressed: &'static [u8]) -> Self {
        Self { compressed, similar: None, bytes: OnceLock::new() }
    }

    /// A file that was compressed with another one, `similar`.
    pub(crate) const fn with_similar(compressed: &'static [u8], similar: &'static [u8]) -> Self {
        Self { compressed, similar: Some(similar), bytes: OnceLock::new() }
    }

    /// The bytes of the file and a terminating zero, which the driver expects after PTX.
    ///
    /// # Panics
    /// If the bytes are not those that `build.rs` has compressed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get_or_init(|| {
            let similar = self.similar.map(|similar| decompress(similar, None));
            let mut bytes = decompress(self.compressed, similar.as_deref());
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

    /// The names of the kernels in PTX.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> impl Iterator<Item = &str> {
        let kernels = self.ptx().to_str().expect("PTX is ASCII").split(ENTRY).skip(1);
        kernels.map(|kernel| kernel.split('(').next().expect("a first part"))
    }

    /// The text of PTX with the kernel `name` alone: what stands before the first kernel, which declares the shared
    /// memory of all, and this kernel. No kernel refers to another.
    ///
    /// # Panics
    /// If the file has machine code, or no such kernel.
    pub(crate) fn ptx_of(&self, name: &CStr) -> CString {
        let text = self.ptx().to_str().expect("PTX is ASCII");
        let begin = format!("{ENTRY}{}(", name.to_str().expect("names are ASCII"));
        let at = text.find(&begin).expect("the file has the kernel");
        let (declarations, kernel) = (&text[..text.find(ENTRY).unwrap_or(at)], &text[at..]);
        let end = kernel[ENTRY.len()..].find(ENTRY).map_or(kernel.len(), |next| ENTRY.len() + next);
        CString::new([declarations, &kernel[..end]].concat()).expect("text has no zero")
    }
}

/// Decompresses a file that was compressed with the file `similar`.
fn decompress(compressed: &[u8], similar: Option<&[u8]>) -> Vec<u8> {
    let dictionary = env!("KERNELS_DICTIONARY").parse().expect("build.rs has set a number");
    let mut bytes = Vec::new();
    let read = Lzma2Reader::new(compressed, dictionary, similar).read_to_end(&mut bytes);
    read.expect("build.rs has compressed it");
    bytes
}

/// The beginning of a kernel in PTX, before its name.
const ENTRY: &str = ".visible .entry ";

/// The bytes of a file that `build.rs` has compressed.
macro_rules! compressed {
    ($file:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".lzma2"))
    };
}

pub(crate) use compressed;

/// `kernels/resample.cu`, which makes a model's input of a frame.
pub static RESAMPLE: CompressedKernels = CompressedKernels::new(compressed!("resample.sm_60.ptx"));

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

    #[test]
    fn a_kernel_alone_has_the_declarations_of_the_file_and_its_own_text() {
        let ptx = RESAMPLE.ptx().to_str().unwrap();
        let names: Vec<_> = RESAMPLE.entries().collect();
        assert!(names.len() > 1);
        let (declarations, kernels) = ptx.split_once(ENTRY).unwrap();
        for (name, kernel) in names.into_iter().zip(kernels.split(ENTRY)) {
            let alone = RESAMPLE.ptx_of(&CString::new(name).unwrap());
            assert_eq!(alone.to_str().unwrap(), format!("{declarations}{ENTRY}{kernel}"));
        }
    }
}
