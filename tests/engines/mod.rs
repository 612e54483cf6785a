//! The engine under test: the CPU's, or the GPU's where `NMSFILTER_TEST_BACKEND` is `cuda`.
#![allow(dead_code, reason = "each test program uses some of it")]

use gstnmsfilter::engine::{Cpu, Cuda, Engine};

/// Whether the tests are to run on a GPU.
pub fn on_gpu() -> bool {
    match std::env::var("NMSFILTER_TEST_BACKEND").as_deref() {
        Ok("cuda") => true,
        Ok("cpu") | Err(_) => false,
        Ok(other) => panic!("expected NMSFILTER_TEST_BACKEND to be cpu or cuda, got {other}"),
    }
}

/// A new engine to hold to `reference`.
pub fn fast() -> Box<dyn Engine> {
    match on_gpu() {
        true => Box::new(Cuda::new(Some(0)).expect("NMSFILTER_TEST_BACKEND=cuda needs a GPU")),
        false => Box::new(Cpu::default()),
    }
}
