// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks and conversions for all functions that C calls.
//!
//! In: pointers of the caller, which may be NULL, structures of another version of the header, and text that may not be
//! UTF-8. Out: a [`Failure`], which becomes a status and a text, or the value. No panic leaves [`guard`].

use std::any::Any;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Status;

/// The reason why a function failed.
#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    pub fn new(status: Status, text: impl Display) -> Self {
        Self { status, text: text.to_string() }
    }

    /// An argument is invalid.
    pub fn argument(text: impl Display) -> Self {
        Self::new(Status::InvalidArgument, text)
    }

    /// The text for C.
    pub fn c_text(&self) -> CString {
        c_text(&self.text)
    }
}

/// A text for C: without the zero bytes that it may have from a tensor's id.
pub fn c_text(text: &str) -> CString {
    let text: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    CString::new(text).unwrap_or_default()
}

/// Calls `function`. A panic, which is a defect of this library, becomes a failure.
pub fn guard<T>(function: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|panic| {
        let text = format!("a defect of this library: {}; report it", message(&*panic));
        Err(Failure::new(Status::Internal, text))
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

/// A structure that begins with its size in bytes, which the caller sets.
///
/// # Safety
/// The type is `repr(C)`, has no padding that is read, and its first field is a `usize`, the size. All-zero bytes are
/// valid for it, and so is every number in each of its fields.
pub unsafe trait SizedStruct: Copy {
    /// Its name in the header.
    const NAME: &'static str;
    /// Its size in the first version of the header that had it.
    const FIRST_SIZE: usize;
}

/// No structure of any header is longer. A greater size was not initialized.
const MAX_SIZE: usize = 4096;

/// Implements [`SizedStruct`]: the first version of the structure ended with this field.
macro_rules! sized_struct {
    ($name:ident, $c_name:literal, $last:ident: $type:ty) => {
        // SAFETY: the structure consists of numbers, pointers and optional functions, and begins with `size`.
        unsafe impl $crate::border::SizedStruct for $name {
            const NAME: &'static str = $c_name;
            const FIRST_SIZE: usize = std::mem::offset_of!($name, $last) + size_of::<$type>();
        }
        const _: () = assert!(std::mem::offset_of!($name, size) == 0);
    };
}
pub(crate) use sized_struct;

/// Reads the structure at `from`. Fields that an older header does not have are zero.
///
/// # Errors
/// If the pointer is NULL, if the size is less than in any header, or if a structure of a newer header has other
/// bytes than zero where this library knows no fields.
///
/// # Safety
/// `from` is NULL or valid for reads of as many bytes as its first field has.
pub unsafe fn read<T: SizedStruct>(from: *const T, argument: &str) -> Result<T, Failure> {
    // SAFETY: the caller guarantees it.
    let size = unsafe { size_at(from, argument) }?;
    // SAFETY: `size` bytes are readable, and all-zero bytes are valid.
    unsafe { read_bytes(from.cast(), size, argument) }
}

/// The size of the structure at `from`.
///
/// # Errors
/// If the pointer is NULL, or the size is less than in any header.
///
/// # Safety
/// `from` is NULL or valid for reads of a `usize`.
pub unsafe fn size_at<T: SizedStruct>(from: *const T, argument: &str) -> Result<usize, Failure> {
    check_pointer(from, argument)?;
    // SAFETY: the pointer is not NULL, and the first field is the size.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    check_size::<T>(size, argument)?;
    Ok(size)
}

/// # Errors
/// If the size is less than in any header, or more than [`MAX_SIZE`].
pub fn check_size<T: SizedStruct>(size: usize, argument: &str) -> Result<(), Failure> {
    if (T::FIRST_SIZE..=MAX_SIZE).contains(&size) {
        return Ok(());
    }
    let (limit, than) =
        if size < T::FIRST_SIZE { (T::FIRST_SIZE, "least") } else { (MAX_SIZE, "most") };
    Err(Failure::argument(format!(
        "{argument}: expected a size of at {than} {limit}, got {size}; set it to sizeof({})",
        T::NAME
    )))
}

/// The structure of this size at `from`.
///
/// # Errors
/// If bytes are not zero where this library knows no fields.
///
/// # Safety
/// `from` is valid for reads of `size` bytes.
pub unsafe fn read_bytes<T: SizedStruct>(
    from: *const u8,
    size: usize,
    argument: &str,
) -> Result<T, Failure> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: both have this many bytes; all-zero bytes and all numbers are valid for the type.
    let (value, rest) = unsafe {
        let known = size.min(size_of::<T>());
        from.copy_to_nonoverlapping(value.as_mut_ptr().cast::<u8>(), known);
        (value.assume_init(), std::slice::from_raw_parts(from.add(known), size - known))
    };
    if rest.iter().all(|&byte| byte == 0) {
        Ok(value)
    } else {
        Err(Failure::argument(format!(
            "{argument}: the structure {} has {size} bytes, of which this library knows {}; leave newer fields 0, or \
             install a newer library",
            T::NAME,
            size_of::<T>()
        )))
    }
}

/// Writes as much of `value` as the caller's structure has room for, and zeros after it. `size` was checked.
///
/// # Safety
/// `to` is valid for writes of `size` bytes.
pub unsafe fn write<T: Copy>(to: *mut T, size: usize, value: &T) {
    let known = size.min(size_of::<T>());
    // SAFETY: `known` is not more than either has, and the caller guarantees the rest.
    unsafe {
        (&raw const *value).cast::<u8>().copy_to_nonoverlapping(to.cast::<u8>(), known);
        to.cast::<u8>().add(known).write_bytes(0, size - known);
    }
}

/// # Errors
/// If the pointer is NULL.
pub fn check_pointer<T: ?Sized>(pointer: *const T, argument: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        Err(Failure::argument(format!("{argument}: expected a pointer, got NULL")))
    } else {
        Ok(())
    }
}

/// The text at `pointer`; `None` if it is NULL.
///
/// # Errors
/// If the text is not UTF-8.
///
/// # Safety
/// `pointer` is NULL, or a zero-terminated string that exists during `'a`.
pub unsafe fn text<'a>(pointer: *const c_char, argument: &str) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not NULL; the caller guarantees the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    let not_utf8 =
        |_| Failure::argument(format!("{argument}: expected text in UTF-8, got {text:?}"));
    text.to_str().map(Some).map_err(not_utf8)
}

/// The elements at `pointer`; none if `count` is 0.
///
/// # Errors
/// If the pointer is NULL or not aligned, and `count` is not 0.
///
/// # Safety
/// `pointer` is NULL, or valid for reads of `count` elements during `'a`.
pub unsafe fn slice<'a, T>(
    pointer: *const T,
    count: usize,
    argument: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check_pointer(pointer, argument)?;
    if !pointer.is_aligned() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!(
            "{argument}: expected {count} elements at an address that is a multiple of {}, got {pointer:p}",
            align_of::<T>()
        )));
    }
    // SAFETY: it is neither NULL nor unaligned; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Example {
        size: usize,
        first: u32,
        second: u32,
    }

    sized_struct!(Example, "Example", first: u32);

    fn read_words<const N: usize>(words: [usize; N]) -> Result<Example, Failure> {
        // SAFETY: the array is at least as long as its first element.
        unsafe { read((&raw const words).cast::<Example>(), "example") }
    }

    #[test]
    fn structures_of_older_and_newer_headers_are_read() {
        let both = usize::from_ne_bytes(
            [7u32.to_ne_bytes(), 9u32.to_ne_bytes()].concat().try_into().unwrap(),
        );
        let older = read_words([offset_of!(Example, second), both]).unwrap();
        assert_eq!((older.first, older.second), (7, 0));
        let same = read_words([size_of::<Example>(), both]).unwrap();
        assert_eq!((same.first, same.second), (7, 9));
        let newer = read_words([size_of::<Example>() + 8, both, 0]).unwrap();
        assert_eq!((newer.first, newer.second), (7, 9));
        let unknown = read_words([size_of::<Example>() + 8, both, 1]).unwrap_err();
        assert!(unknown.text.contains("this library knows 16"), "{}", unknown.text);
        let none = read_words([0, both]).unwrap_err();
        assert_eq!(
            none.text,
            "example: expected a size of at least 12, got 0; set it to sizeof(Example)"
        );
    }

    #[test]
    fn as_much_is_written_as_there_is_room_for() {
        let value = Example { size: 16, first: 7, second: 9 };
        let mut room = [u8::MAX; 20];
        // SAFETY: as many bytes are passed.
        unsafe { write(room.as_mut_ptr().cast(), 12, &value) };
        assert_eq!(room[8..], [&7u32.to_ne_bytes()[..], &[u8::MAX; 8]].concat());
        // SAFETY: as many bytes are passed.
        unsafe { write(room.as_mut_ptr().cast(), 20, &value) };
        assert_eq!(room[12..], [&9u32.to_ne_bytes()[..], &[0; 4]].concat());
    }

    #[test]
    fn a_panic_is_a_failure() {
        let number = "0".parse::<usize>().unwrap();
        let failure = guard(|| Ok([1].get(number + 1).copied().expect("an element"))).unwrap_err();
        assert!(matches!(failure.status, Status::Internal));
        assert_eq!(failure.text, "a defect of this library: an element; report it");
    }

    #[test]
    fn text_that_is_not_utf8_is_an_argument_error() {
        let read = |bytes: &CStr| {
            // SAFETY: the string ends with a zero byte.
            unsafe { text(bytes.as_ptr(), "id") }.map(|text| text.map(str::to_owned))
        };
        assert_eq!(read(c"boxes").unwrap().as_deref(), Some("boxes"));
        let failure = read(c"b\xffx").unwrap_err();
        assert_eq!(failure.text, r#"id: expected text in UTF-8, got "b\xffx""#);
    }
}
