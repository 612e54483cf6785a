// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times the paper's two kernels (kernels/paper.cu), separately and together.
//!
//! In: windows. Out: the survivors, and GPU times (`gpu_time`).

use std::ffi::{CString, c_void};

use anyhow::{Context, Result};
use nmsfilter_core::device::{
    Device, DeviceBuffer, Kernel, Module, NodeSequence, PinnedBuffer, Start, Stream,
};

use crate::gpu_time::{Repeats, gpu_time};
use crate::workload::Window;

/// The kernels, with device memory for a maximum number of windows.
pub struct PaperKernels {
    stream: Stream,
    map: Kernel,
    reduce: Kernel,
    capacity: u32,
    windows: DeviceBuffer,
    matrix: DeviceBuffer,
    survives: DeviceBuffer,
}

/// Microseconds of GPU time.
#[derive(Clone, Debug)]
pub struct PaperTimes {
    /// True if each window survives.
    pub survives: Vec<bool>,
    /// The memset of the matrix, map, reduce.
    pub separate: [f64; 3],
    /// Map and reduce.
    pub map_and_reduce: f64,
    /// The memset, map and reduce.
    pub all: f64,
}

/// The parts of a graph: the memset, map, reduce.
type Parts = [bool; 3];

impl PaperKernels {
    /// Loads the kernels on GPU 0. `capacity` is the maximum number of windows (the paper's D_max).
    /// It must be a multiple of 32 times the number of partitions that is passed to
    /// [`time`](Self::time).
    ///
    /// # Errors
    /// Returns an error if the GPU fails.
    pub fn new(capacity: u32) -> Result<Self> {
        let device = Device::open(0)?;
        let buffer = |bytes| DeviceBuffer::new(&device, bytes).context("the paper's matrix");
        let n = capacity as usize;
        let (windows, matrix, survives) = (buffer(n * 16)?, buffer(n * n)?, buffer(n)?);
        let ptx = CString::new(include_str!("../../kernels/ptx/paper.sm_60.ptx"))?;
        let module = Module::load(&device, &ptx)?;
        let (map, reduce) = (module.kernel(c"paper_map")?, module.kernel(c"paper_reduce")?);
        let stream = Stream::new(&device)?;
        Ok(Self { stream, map, reduce, capacity, windows, matrix, survives })
    }

    /// Runs the kernels for `windows` in `k` partitions, and measures them.
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If there are more windows than the capacity.
    pub fn time(&self, windows: &[Window], k: u32, repeats: Repeats) -> Result<PaperTimes> {
        assert!(windows.len() <= self.capacity as usize, "there is memory for the windows");
        let bytes: &[u8] = bytemuck::cast_slice(windows);
        let mut pinned = PinnedBuffer::new(self.stream.device(), bytes.len().max(1))?;
        pinned.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        self.stream.zero(&self.windows)?;
        self.stream.upload(&pinned, &self.windows, bytes.len())?;
        self.stream.synchronize()?;

        let n = windows.len() as u32;
        let time = |parts: Parts| {
            let graph = self.graph(n, k, parts, repeats.times)?;
            // SAFETY: the graph accesses buffers of `self` only, within their size, and `gpu_time` waits for it.
            unsafe { gpu_time(&self.stream, &graph, repeats) }
        };
        let separate =
            [time([true, false, false])?, time([false, true, false])?, time([false, false, true])?];
        let map_and_reduce = time([false, true, true])?;
        let all = time([true; 3])?;
        let mut survives = vec![0u8; windows.len()];
        // SAFETY: `survives` has `capacity` bytes in device memory, one per window.
        unsafe { self.stream.download(self.survives.address(), &mut survives)? };
        let survives = survives.into_iter().map(|byte| byte != 0).collect();
        Ok(PaperTimes { survives, separate, map_and_reduce, all })
    }

    /// A graph with `times` repetitions of these parts for `n` windows and `k` partitions.
    fn graph(&self, n: u32, k: u32, parts: Parts, times: u32) -> Result<NodeSequence> {
        let addresses = [&self.windows, &self.matrix, &self.survives].map(DeviceBuffer::address);
        let [windows, matrix, survives] = &addresses;
        let (theta, capacity) = (0.3f32, self.capacity);
        let tiles = n.div_ceil(16).max(1);
        let of_map =
            [pointer(windows), pointer(&n), pointer(&theta), pointer(matrix), pointer(&capacity)];
        let of_reduce = [pointer(matrix), pointer(survives), pointer(&capacity), pointer(&k)];
        let (mut of_map, mut of_reduce) = (of_map, of_reduce);
        let map = self.map.node([tiles, tiles, 1], [16, 16, 1], &mut of_map);
        let reduce = self.reduce.node([capacity, 1, 1], [capacity / k, 1, 1], &mut of_reduce);
        let mut sequence = NodeSequence::new(self.stream.device())?;
        for _ in 0..times {
            let [memset, with_map, with_reduce] = parts;
            if memset {
                sequence.add_memset(*matrix, 1, [self.matrix.len(), 1, self.matrix.len()])?;
            }
            for (kernel, _) in
                [(&map, with_map), (&reduce, with_reduce)].into_iter().filter(|part| part.1)
            {
                // SAFETY: the kernel has the parameters that it expects (kernels/paper.cu).
                unsafe { sequence.add_kernel(kernel, Start::AfterCompletion) }?;
            }
        }
        sequence.instantiate()?;
        Ok(sequence)
    }
}

fn pointer<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}
