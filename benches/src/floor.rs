// SPDX-License-Identifier: MIT OR Apache-2.0
//! The floor under a frame's time: four kernels without work, launched as a graph, and a host that polls for their end.

use std::ffi::c_void;

use anyhow::{Context, Result};
use nmsfilter_core::device::{
    Device, DeviceBuffer, Kernel, Module, NodeSequence, PinnedBuffer, Start, Stream,
};

/// `idle` does nothing. `done` counts launches at its first address, and writes the count to its second one.
const PTX: &std::ffi::CStr = c"
.version 6.3
.target sm_60
.address_size 64
.visible .entry idle() { ret; }
.visible .entry done(.param .u64 counter, .param .u64 host) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [counter];
    ld.param.u64 %rd2, [host];
    ld.global.u32 %r1, [%rd1];
    add.s32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    membar.sys;
    st.global.u32 [%rd2], %r1;
    ret;
}
";

/// A stream with four kernels that do nothing but tell the host that they have run.
pub struct Floor {
    // Dropped first: launches refer to the memory and the kernels.
    graph: NodeSequence,
    stream: Stream,
    host: PinnedBuffer,
    _counter: DeviceBuffer,
    _kernels: [Kernel; 2],
    launches: u32,
}

impl Floor {
    /// Makes the graph on GPU 0.
    ///
    /// # Errors
    /// If the GPU fails, or does not accept the kernels.
    pub fn new() -> Result<Self> {
        let device = Device::open(0)?;
        let module = Module::load(&device, PTX)?;
        let kernels = [module.kernel(c"idle")?, module.kernel(c"done")?];
        let counter = DeviceBuffer::new(&device, 4).context("no memory for a counter")?;
        let host = PinnedBuffer::new(&device, 4)?;
        let stream = Stream::with_highest_priority(&device)?;
        stream.zero(&counter)?;
        stream.synchronize()?;
        let addresses = [counter.address(), host.address()];
        let mut params =
            addresses.each_ref().map(|at| std::ptr::from_ref(at).cast_mut().cast::<c_void>());
        let idle = kernels[0].node([1; 3], [1; 3], &mut []);
        let done = kernels[1].node([1; 3], [1; 3], &mut params);
        let mut graph = NodeSequence::new(&device)?;
        for kernel in [&idle, &idle, &idle, &done] {
            // SAFETY: the nodes have the parameters of PTX.
            unsafe { graph.add_kernel(kernel, Start::AfterCompletion) }?;
        }
        graph.instantiate()?;
        Ok(Self { graph, stream, host, _counter: counter, _kernels: kernels, launches: 0 })
    }

    /// Launches the kernels and polls until they have run.
    ///
    /// # Errors
    /// If the launch fails.
    pub fn run(&mut self) -> Result<()> {
        let driver = self.stream.device().enter()?;
        // SAFETY: the kernels access memory of `self` only, and no launch is under way.
        unsafe { self.graph.launch(&driver, &self.stream) }?;
        drop(driver);
        self.launches += 1;
        let count = self.host.as_ptr().cast::<u32>();
        // SAFETY: the buffer has four bytes, which only the kernel writes.
        while unsafe { count.read_volatile() } != self.launches {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // A launch that failed can still be under way.
        let _ = self.stream.synchronize();
    }
}
