// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that detects accesses before its beginning or past its end.

use std::ffi::{c_int, c_void};

/// A multiple of every processor's page size.
const PAGE: usize = 1 << 16;

const PROT_NONE: c_int = 0;
const PROT_READ_WRITE: c_int = 3;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        from: i64,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, len: usize, prot: c_int) -> c_int;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
}

/// How accesses outside of the memory are detected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Border {
    /// The memory is a heap block of exactly its size, so AddressSanitizer reports accesses outside
    /// of it.
    Block,
    /// The memory begins directly after an inaccessible page.
    PageBefore,
    /// The memory ends directly before an inaccessible page.
    PageBehind,
}

/// Returns memory that contains these bytes.
pub fn memory(bytes: &[u8], border: Border) -> gst::Memory {
    match border {
        Border::Block => gst::Memory::from_mut_slice(bytes.to_vec().into_boxed_slice()),
        Border::PageBefore | Border::PageBehind => {
            let mut pages = Pages::new(bytes.len(), border == Border::PageBehind);
            pages.as_mut().copy_from_slice(bytes);
            gst::Memory::from_mut_slice(pages)
        }
    }
}

/// Pages between two inaccessible pages.
struct Pages {
    base: *mut u8,
    mapped: usize,
    start: usize,
    len: usize,
}

// SAFETY: this value is the only owner of the pages.
unsafe impl Send for Pages {}

impl Pages {
    fn new(len: usize, at_end: bool) -> Self {
        let body = len.next_multiple_of(PAGE);
        let mapped = body + 2 * PAGE;
        // SAFETY: the kernel chooses the address of the new pages. All pages between the first and
        // the last are made accessible.
        unsafe {
            let base = mmap(std::ptr::null_mut(), mapped, PROT_NONE, MAP_PRIVATE_ANONYMOUS, -1, 0);
            assert_ne!(base.addr(), usize::MAX, "pages can be mapped");
            let base = base.cast::<u8>();
            assert_eq!(mprotect(base.add(PAGE).cast(), body, PROT_READ_WRITE), 0);
            let start = if at_end { PAGE + body - len } else { PAGE };
            Self { base, mapped, start, len }
        }
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: these bytes are mapped until this is dropped.
        unsafe { std::slice::from_raw_parts(self.base.add(self.start), self.len) }
    }
}

impl AsMut<[u8]> for Pages {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: these bytes are mapped until this is dropped, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.start), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped with this size.
        unsafe { munmap(self.base.cast(), self.mapped) };
    }
}
