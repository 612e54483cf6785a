//! A frame's four kernels as one launch.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use cudarc::driver::sys;

use super::interface::{
    DECODE_THREADS, KernelParams, MAP_THREADS, PUBLISH_THREADS, Precision, REDUCE_THREADS,
    map_blocks, reduce_blocks, workspace_bytes,
};
use super::kernels::Kernels;
use crate::device::{DeviceBuffer, DriverError, EdgeData, Stream};

/// What a graph is instantiated for; frames that need memory for fewer candidates run on it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Candidates that there is memory for.
    pub capacity: u32,
    pub precisions: [Precision; 2],
    pub multi_label: bool,
}

impl Shape {
    /// Whether frames of `wanted` run on a graph of this.
    fn holds(&self, wanted: &Self) -> bool {
        self.capacity >= wanted.capacity
            && (self.precisions, self.multi_label) == (wanted.precisions, wanted.multi_label)
    }
}

/// An instantiated graph, with the memory that its kernels work in.
#[derive(Debug)]
pub(super) struct Graph {
    kernels: Arc<Kernels>,
    shape: Shape,
    workspace: DeviceBuffer,
    graph: sys::CUgraph,
    exec: sys::CUgraphExec,
    decode: sys::CUgraphNode,
    /// What the decode node has been told.
    frame: KernelParams,
}

// SAFETY: handles may be used from any thread in whose context they are.
unsafe impl Send for Graph {}

impl Graph {
    /// One whose last kernel writes to the device's address `outcome`.
    pub fn new(
        kernels: &Arc<Kernels>,
        stream: &Stream,
        shape: Shape,
        outcome: u64,
    ) -> Result<Self, DriverError> {
        let device = kernels.device();
        let workspace = DeviceBuffer::new(device, workspace_bytes(shape.capacity))?;
        // The header must be zero; of the rest nothing is read that was not written, but lanes may
        // load what they then do not look at.
        stream.zero(&workspace)?;
        let mut graph = Self {
            kernels: kernels.clone(),
            shape,
            workspace,
            graph: null_mut(),
            exec: null_mut(),
            decode: null_mut(),
            frame: KernelParams::default(),
        };
        let driver = device.enter()?;
        // SAFETY: the addresses are those of handles; `drop` destroys both.
        unsafe { driver.cuGraphCreate(&mut graph.graph, 0) }?;

        let address = graph.workspace.address();
        let map = map_blocks(device.multiprocessors(), shape.capacity);
        let reduce = reduce_blocks(device.multiprocessors(), shape.capacity);
        let mut last: sys::CUgraphNode = null_mut();
        let mut add = |function, blocks, threads, parameters: &mut [*mut c_void]| {
            let node = node(function, blocks, threads, parameters);
            let before = last;
            let (is_first, programmatic_launch) = (before.is_null(), kernels.programmatic_launch);
            let waits_for =
                if is_first || programmatic_launch { (null(), 0) } else { (&raw const before, 1) };
            // SAFETY: the parameters are as many and of such types as the kernel takes; the
            // driver copies them.
            unsafe {
                let (nodes, count) = waits_for;
                driver.cuGraphAddKernelNode(&mut last, graph.graph, nodes, count, &node)?;
            }
            if programmatic_launch && !is_first {
                let edge = EdgeData::IN_TURN;
                // SAFETY: both are nodes of the graph, and each address is that of one thing.
                let added = unsafe {
                    driver.cuGraphAddDependencies_v2(graph.graph, &before, &last, &edge, 1)
                };
                added.expect("kernels take turns where the driver knows of it")?;
            }
            Ok::<_, DriverError>(last)
        };
        let workspace = (&raw const address).cast_mut().cast();
        let frame = (&raw const graph.frame).cast_mut().cast();
        let outcome = (&raw const outcome).cast_mut().cast();
        let decode = kernels.decode(shape.precisions, shape.multi_label);
        // `launch` sets the number of its blocks with the frame.
        graph.decode = add(decode, 1, DECODE_THREADS, &mut [frame, workspace])?;
        add(kernels.map, map, MAP_THREADS, &mut [workspace])?;
        add(kernels.reduce, reduce, REDUCE_THREADS, &mut [workspace])?;
        add(kernels.publish, 1, PUBLISH_THREADS, &mut [workspace, outcome])?;
        // Without CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY kernels have the priority of the
        // stream that the graph is launched into.
        // SAFETY: the address is that of a handle.
        unsafe { driver.cuGraphInstantiateWithFlags(&mut graph.exec, graph.graph, 0) }?;
        drop(driver);
        Ok(graph)
    }

    /// Whether frames of `wanted` run on it.
    pub fn holds(&self, wanted: &Shape) -> bool {
        self.shape.holds(wanted)
    }

    pub fn capacity(&self) -> u32 {
        self.shape.capacity
    }

    /// Starts the kernels on `frame`.
    pub fn launch(&mut self, stream: &Stream, frame: &KernelParams) -> Result<(), DriverError> {
        let driver = self.kernels.device().enter()?;
        if self.frame != *frame {
            let address = self.workspace.address();
            let mut parameters = [
                (&raw const *frame).cast_mut().cast(),
                (&raw const address).cast_mut().cast::<c_void>(),
            ];
            let function = self.kernels.decode(self.shape.precisions, self.shape.multi_label);
            let node = node(function, frame.decode_blocks(), DECODE_THREADS, &mut parameters);
            // SAFETY: the parameters are those that decode takes; the driver copies them.
            unsafe { driver.cuGraphExecKernelNodeSetParams(self.exec, self.decode, &node) }?;
            self.frame = *frame;
        }
        // SAFETY: the frame's addresses are those of tensors that the caller holds until the
        // stream is done, and the kernels stay within them and the workspace.
        unsafe { driver.cuGraphLaunch(self.exec, stream.handle()) }
    }
}

fn node(
    function: sys::CUfunction,
    blocks: u32,
    threads: u32,
    parameters: &mut [*mut c_void],
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: parameters.as_mut_ptr(),
        extra: null_mut(),
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(driver) = self.kernels.device().enter() {
            // SAFETY: nobody else has them; the engine has waited for what it launched. The driver
            // is given no null handles.
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
