// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times the paper's two kernels (kernels/paper.cu) separately.
//!
//! In: windows. Out: the number of survivors, and the times of the memset and of each kernel. A
//! time is the wall time of a CUDA graph with consecutive launches, divided by the number of
//! launches.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use cudarc::driver::sys;
use gstnmsfilter::internals::device::{self, Device, DeviceBuffer, PinnedBuffer, Stream};

use crate::measure::{Times, measure};
use crate::workload::Window;

/// Number of launches in a graph.
const LAUNCHES: usize = 20;

/// The paper's kernels, with device memory for a maximum number of windows.
pub struct PaperKernels {
    stream: Stream,
    module: sys::CUmodule,
    map: sys::CUfunction,
    reduce: sys::CUfunction,
    capacity: u32,
    windows: DeviceBuffer,
    matrix: DeviceBuffer,
    survives: DeviceBuffer,
}

impl PaperKernels {
    /// Loads the kernels on GPU 0. `capacity` is the maximum number of windows (the paper's D_max).
    /// It must be a multiple of 32 times the number of partitions that is passed to
    /// [`time`](Self::time).
    ///
    /// # Errors
    /// Returns an error if the GPU fails.
    pub fn new(capacity: u32) -> Result<Self> {
        let device = Device::open(0)?;
        let stream = Stream::new(&device)?;
        let buffer = |bytes| DeviceBuffer::new(&device, bytes).context("the paper's matrix");
        let n = capacity as usize;
        let (windows, matrix, survives) = (buffer(n * 16)?, buffer(n * n)?, buffer(n)?);
        let image = CString::new(include_str!("../../kernels/ptx/paper.sm_60.ptx"))?;
        let driver = device::enter(&device)?;
        let mut module = null_mut();
        let (mut map, mut reduce) = (null_mut(), null_mut());
        // SAFETY: the handles are valid for writes during the calls. The image and the names end
        // with a zero byte.
        unsafe {
            driver.cuModuleLoadData(&mut module, image.as_ptr().cast())?;
            driver.cuModuleGetFunction(&mut map, module, c"paper_map".as_ptr())?;
            driver.cuModuleGetFunction(&mut reduce, module, c"paper_reduce".as_ptr())?;
        }
        drop(driver);
        Ok(Self { stream, module, map, reduce, capacity, windows, matrix, survives })
    }

    /// Returns the number of survivors of `windows`, and the times of the matrix's memset, of map,
    /// and of reduce with `k` partitions.
    ///
    /// # Errors
    /// Returns an error if the GPU fails.
    pub fn time(
        &self,
        windows: &[Window],
        k: u32,
        budget: Duration,
    ) -> Result<(usize, [Times; 3])> {
        let device = self.stream.device().clone();
        let bytes = windows.len() * 16;
        let pinned = PinnedBuffer::new(&device, bytes.max(1))?;
        // SAFETY: `pinned` has at least `bytes` bytes, and there is no other reference to them.
        unsafe { pinned.as_ptr().copy_from_nonoverlapping(windows.as_ptr().cast(), bytes) };
        self.stream.zero(&self.windows)?;
        self.stream.upload(&pinned, &self.windows, bytes)?;
        self.preset()?;
        self.stream.synchronize()?;

        let addresses = [&self.windows, &self.matrix, &self.survives].map(DeviceBuffer::address);
        let [at_windows, at_matrix, at_survives] = &addresses;
        let (n, theta, capacity) = (windows.len() as u32, 0.3f32, self.capacity);
        let blocks = n.div_ceil(16).max(1);
        let map = self.graph(
            &device,
            self.map,
            [blocks, blocks],
            [16, 16],
            &mut [
                pointer(at_windows),
                pointer(&n),
                pointer(&theta),
                pointer(at_matrix),
                pointer(&capacity),
            ],
        )?;
        let reduce = self.graph(
            &device,
            self.reduce,
            [capacity, 1],
            [capacity / k, 1],
            &mut [pointer(at_matrix), pointer(at_survives), pointer(&capacity), pointer(&k)],
        )?;
        let repeat = |times: Times| times.scaled(1.0 / LAUNCHES as f64);
        let mut failure = None;
        let mut time_of = |work: &dyn Fn() -> Result<()>| {
            repeat(measure(budget, || {
                if let Err(error) = work() {
                    failure.get_or_insert(error);
                }
            }))
        };
        let memset = time_of(&|| {
            (0..LAUNCHES).try_for_each(|_| self.preset())?;
            Ok(self.stream.synchronize()?)
        });
        let times =
            [memset, time_of(&|| map.run(&self.stream)), time_of(&|| reduce.run(&self.stream))];
        if let Some(error) = failure {
            return Err(error);
        }
        let mut survives = vec![0u8; windows.len()];
        // SAFETY: `survives` has `capacity` bytes in device memory, one per window.
        unsafe { self.stream.download(self.survives.address(), &mut survives)? };
        Ok((survives.iter().filter(|&&byte| byte != 0).count(), times))
    }

    /// Sets every byte of the matrix to 1.
    fn preset(&self) -> Result<()> {
        let driver = device::enter(self.stream.device())?;
        // SAFETY: `matrix` has `len` bytes, and is freed after the stream has finished.
        unsafe {
            driver.cuMemsetD8Async(
                self.matrix.address(),
                1,
                self.matrix.len(),
                self.stream.as_raw().cast(),
            )?;
        }
        Ok(())
    }

    fn graph(
        &self,
        device: &Arc<Device>,
        function: sys::CUfunction,
        blocks: [u32; 2],
        threads: [u32; 2],
        parameters: &mut [*mut c_void],
    ) -> Result<Graph> {
        let mut made = Graph { device: device.clone(), graph: null_mut(), exec: null_mut() };
        let driver = device::enter(device)?;
        let node = sys::CUDA_KERNEL_NODE_PARAMS {
            func: function,
            gridDimX: blocks[0],
            gridDimY: blocks[1],
            gridDimZ: 1,
            blockDimX: threads[0],
            blockDimY: threads[1],
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: parameters.as_mut_ptr(),
            extra: null_mut(),
        };
        // SAFETY: the parameters have the number and types that the kernel expects, and the driver
        // copies them. The kernel accesses only buffers of `self`, within `capacity`. The buffers
        // are freed after the graph.
        unsafe {
            driver.cuGraphCreate(&mut made.graph, 0)?;
            let mut last: sys::CUgraphNode = null_mut();
            for i in 0..LAUNCHES {
                let before = last;
                let dependencies = if i == 0 { null() } else { &raw const before };
                let count = usize::from(i != 0);
                driver.cuGraphAddKernelNode(&mut last, made.graph, dependencies, count, &node)?;
            }
            driver.cuGraphInstantiateWithFlags(&mut made.exec, made.graph, 0)?;
        }
        drop(driver);
        Ok(made)
    }
}

fn pointer<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

impl Drop for PaperKernels {
    fn drop(&mut self) {
        if let Ok(driver) = device::enter(self.stream.device()) {
            // SAFETY: `Graph::run` synchronizes the stream, so no kernel is running.
            let _ = unsafe { driver.cuModuleUnload(self.module) };
        }
    }
}

struct Graph {
    device: Arc<Device>,
    graph: sys::CUgraph,
    exec: sys::CUgraphExec,
}

impl Graph {
    fn run(&self, stream: &Stream) -> Result<()> {
        // SAFETY: `exec` is valid until `self` is dropped. `PaperKernels::graph` states the
        // requirements of its kernel.
        unsafe { device::enter(&self.device)?.cuGraphLaunch(self.exec, stream.as_raw().cast()) }?;
        Ok(stream.synchronize()?)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(driver) = device::enter(&self.device) {
            // SAFETY: `run` synchronizes the stream, so the graph is not running. The handles are
            // valid or null, which is checked.
            unsafe {
                if !self.exec.is_null() {
                    let _ = driver.cuGraphExecDestroy(self.exec);
                }
                if !self.graph.is_null() {
                    let _ = driver.cuGraphDestroy(self.graph);
                }
            }
        }
    }
}
