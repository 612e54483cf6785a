// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory does not grow with the stream.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use super::camera::{Camera, Object, square};

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which counts the bytes that a thread has allocated and not freed.
struct Counting;

fn count(bytes: isize) {
    // Threads free memory when their own variables are gone.
    let _ = BYTES.try_with(|all| all.set(all.get() + bytes));
}

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Objects move, vanish, come back, and have classes that no later object has.
#[test]
fn ten_thousand_frames_do_not_grow() {
    let labels: Vec<&str> = (0..5000).map(|index| &*format!("class {index}").leak()).collect();
    for algorithm in ["bytetrack", "ocsort", "sort"] {
        let mut camera = Camera::new(&format!("algorithm={algorithm}"));
        let mut bytes = Vec::new();
        for frame in 0..10_000_u32 {
            let way = f64::from(frame % 50) * 3.0;
            let mut objects: Vec<Object> = (0..20)
                .filter(|index| (frame + index) % 7 != 0)
                .map(|index| {
                    let left = f64::from(index % 5) * 90.0 + way;
                    ("person", square(left, f64::from(index / 5) * 110.0, 60.0), 0.9)
                })
                .collect();
            if frame % 2 == 0 {
                objects.push((labels[frame as usize / 2], square(10.0, 10.0, 50.0), 0.9));
            }
            camera.push(
                (frame * 40).into(),
                Some(frame % 3 != 2),
                if frame % 3 != 2 { &objects } else { &[] },
            );
            if frame % 1000 == 999 {
                bytes.push(BYTES.with(Cell::get));
            }
        }
        let grown = bytes.iter().max().unwrap() - bytes[1];
        assert!(grown < 50_000, "{algorithm}: {bytes:?}");
    }
}
