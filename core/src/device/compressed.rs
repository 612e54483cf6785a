// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels in the library, compressed by `build.rs`.
//!
//! In: a file of kernels, as PTX or machine code. Out: its bytes, for the driver to load. They are decompressed once in
//! a process, when they are first needed. A program that does not refer to a file is linked without it.
//!
//! Similar files take little more space than one: the library has their differences from the first.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// A compressed file of kernels.
#[derive(Debug)]
pub struct CompressedKernels {
    compressed: &'static [u8],
    /// The differences of the file from the compressed one.
    differences: Option<&'static [u8]>,
    bytes: OnceLock<Vec<u8>>,
}

impl CompressedKernels {
    pub(crate) const fn new(compressed: &'static [u8]) -> Self {
        Self { compressed, differences: None, bytes: OnceLock::new() }
    }

    /// A file that differs from the compressed one.
    pub(crate) const fn similar(compressed: &'static [u8], differences: &'static [u8]) -> Self {
        Self { compressed, differences: Some(differences), bytes: OnceLock::new() }
    }

    /// The bytes of the file and a terminating zero, which the driver expects after PTX.
    ///
    /// # Panics
    /// If the bytes are not those that `build.rs` has compressed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get_or_init(|| {
            let inflate = |bytes| {
                miniz_oxide::inflate::decompress_to_vec(bytes).expect("build.rs has compressed it")
            };
            let mut bytes = inflate(self.compressed);
            if let Some(differences) = self.differences {
                bytes = apply(&inflate(differences), &bytes);
            }
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

/// Performs the steps that `differences` of `build.rs` has found.
fn apply(differences: &[u8], base: &[u8]) -> Vec<u8> {
    let (count, rest) = differences.split_first_chunk().expect("it begins with a number");
    let (steps, mut inserted) = rest.split_at(u32::from_le_bytes(*count) as usize * 12);
    let mut bytes = Vec::with_capacity(base.len() + inserted.len());
    for step in steps.as_chunks::<4>().0.as_chunks::<3>().0 {
        let [new, first, len] = step.map(|number| u32::from_le_bytes(number) as usize);
        let (added, rest) = inserted.split_at(new);
        bytes.extend_from_slice(added);
        bytes.extend_from_slice(&base[first..first + len]);
        inserted = rest;
    }
    bytes
}

/// The beginning of a kernel in PTX, before its name.
const ENTRY: &str = ".visible .entry ";

/// The bytes of a file that `build.rs` has compressed.
macro_rules! compressed {
    ($file:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".deflate"))
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
