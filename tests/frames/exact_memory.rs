// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory beside which nothing can be accessed.

use std::ffi::{c_int, c_void};

/// A multiple of the page size of every processor.
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

/// Where memory ends, and what is beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Border {
    /// A block of its size: AddressSanitizer reports accesses beside it.
    Block,
    /// It begins behind a page that cannot be accessed.
    PageBefore,
    /// It ends before a page that cannot be accessed.
    PageBehind,
}

/// Memory of these bytes.
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

/// Pages between two that cannot be accessed.
struct Pages {
    base: *mut u8,
    mapped: usize,
    start: usize,
    len: usize,
}

// SAFETY: the pages are owned by this value alone.
unsafe impl Send for Pages {}

impl Pages {
    fn new(len: usize, at_end: bool) -> Self {
        let body = len.next_multiple_of(PAGE);
        let mapped = body + 2 * PAGE;
        // SAFETY: the kernel chooses the address of new pages; those between the first and the last are made
        // accessible.
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
