// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUDA graphs whose nodes run one after the other.
//!
//! In: kernels, and memory to be set. Out: a graph that is launched as often as needed,
//! and whose kernels can get other parameters.

use std::cell::Cell;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use cudarc::driver::sys;

use super::{ContextGuard, Device, DriverError, Stream};

/// A graph of nodes, each of which waits for the one before.
#[derive(Debug)]
pub struct NodeSequence {
    device: Arc<Device>,
    graph: sys::CUgraph,
    /// Null until the first launch.
    exec: sys::CUgraphExec,
    last: Cell<Option<sys::CUgraphNode>>,
}

// SAFETY: handles may be used from any thread in whose context they are, as every method makes it.
unsafe impl Send for NodeSequence {}

/// When a kernel starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When the node before has completed.
    AfterCompletion,
    /// Already before; the kernel executes a grid dependency wait (kernels/portable.cuh). The node before must be a
    /// kernel, and the driver must have edges with data ([`Driver::supports_edge_data`](super::Driver)).
    Programmatic,
}

/// An edge of programmatic dependent launch: a kernel may be launched before the kernel that it depends on has completed,
/// and waits for it with `griddepcontrol.wait`. The first byte is `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`, and the third
/// `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
const PROGRAMMATIC: [u8; 8] = [1, 0, 1, 0, 0, 0, 0, 0];

impl NodeSequence {
    /// A graph without nodes.
    ///
    /// # Errors
    /// If a call fails.
    pub fn new(device: &Arc<Device>) -> Result<Self, DriverError> {
        let mut graph = null_mut();
        // SAFETY: `graph` is valid for writes; `drop` destroys it.
        unsafe { device.enter()?.cuGraphCreate(&mut graph, 0) }?;
        Ok(Self { device: device.clone(), graph, exec: null_mut(), last: Cell::new(None) })
    }

    /// Adds a kernel, and returns its node.
    ///
    /// # Errors
    /// If a call fails.
    ///
    /// # Safety
    /// `kernel` must have a function of the device and the parameters that the function takes. The driver copies them.
    pub unsafe fn add_kernel(
        &self,
        kernel: &sys::CUDA_KERNEL_NODE_PARAMS,
        start: Start,
    ) -> Result<sys::CUgraphNode, DriverError> {
        let driver = self.device.enter()?;
        let mut node = null_mut();
        let before = self.last.get().filter(|_| start == Start::AfterCompletion);
        let (dependencies, count) = as_list(&before);
        // SAFETY: the node before is a node of the graph; the caller guarantees the parameters.
        unsafe {
            driver.cuGraphAddKernelNode(&mut node, self.graph, dependencies, count, kernel)?;
        }
        if let Some(before) = self.last.get().filter(|_| start == Start::Programmatic) {
            // SAFETY: both are nodes of the graph, and each address points to one element.
            let added = unsafe {
                driver.cuGraphAddDependencies_v2(self.graph, &before, &node, &PROGRAMMATIC, 1)
            };
            added.expect("programmatic launch is used only where the driver has this function")?;
        }
        self.last.set(Some(node));
        Ok(node)
    }

    /// Adds a node that sets `rows` of `width` bytes to `value`. Each row begins `pitch` bytes after the one before, the
    /// first at the device address `address`.
    ///
    /// # Errors
    /// If a call fails.
    pub fn add_memset(
        &self,
        address: u64,
        value: u8,
        [width, rows, pitch]: [usize; 3],
    ) -> Result<(), DriverError> {
        let mut node = null_mut();
        let before = self.last.get();
        let (dependencies, count) = as_list(&before);
        let memory = sys::CUDA_MEMSET_NODE_PARAMS {
            dst: address,
            pitch,
            value: value.into(),
            elementSize: 1,
            width,
            height: rows,
        };
        let driver = self.device.enter()?;
        let context = self.device.context;
        // SAFETY: the node before is a node of the graph. `launch` requires the memory.
        let added = unsafe {
            driver.cuGraphAddMemsetNode(
                &mut node,
                self.graph,
                dependencies,
                count,
                &memory,
                context,
            )
        };
        added.expect("drivers for CUDA 10 and later have this function")?;
        self.last.set(Some(node));
        Ok(())
    }

    /// Gives the node of a kernel other parameters and another grid. `driver` has the device's context, so that a launch
    /// with several such changes enters it once.
    ///
    /// # Errors
    /// If a call fails.
    ///
    /// # Safety
    /// `node` must be a node of this graph; `kernel` is as for [`add_kernel`](Self::add_kernel).
    ///
    /// # Panics
    /// If the graph is not instantiated.
    pub unsafe fn set_kernel(
        &self,
        driver: &ContextGuard<'_>,
        node: sys::CUgraphNode,
        kernel: &sys::CUDA_KERNEL_NODE_PARAMS,
    ) -> Result<(), DriverError> {
        assert!(!self.exec.is_null(), "the graph is instantiated");
        // SAFETY: the caller guarantees the node and the parameters.
        unsafe { driver.cuGraphExecKernelNodeSetParams(self.exec, node, kernel) }
    }

    /// Prepares the nodes that have been added for launches.
    ///
    /// # Errors
    /// If a call fails.
    ///
    /// # Panics
    /// If the graph is instantiated already.
    pub fn instantiate(&mut self) -> Result<(), DriverError> {
        assert!(self.exec.is_null(), "a graph is instantiated once");
        // Without CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY kernels have the priority of the
        // stream that the graph is launched into.
        // SAFETY: `exec` is valid for writes; `drop` destroys it.
        unsafe { self.device.enter()?.cuGraphInstantiateWithFlags(&mut self.exec, self.graph, 0) }
    }

    /// Launches the graph asynchronously, in stream order. `driver` has the device's context.
    ///
    /// # Errors
    /// If the call fails, or earlier work of the stream failed.
    ///
    /// # Safety
    /// Until the launch has completed, `self` and the memory that the nodes access must exist, and no other code or work
    /// may access memory that the nodes write, or write memory that they read.
    ///
    /// # Panics
    /// If the graph is not instantiated.
    pub unsafe fn launch(
        &self,
        driver: &ContextGuard<'_>,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        assert!(!self.exec.is_null(), "the graph is instantiated");
        // SAFETY: both handles exist; the caller guarantees the accesses of the nodes.
        unsafe { driver.cuGraphLaunch(self.exec, stream.handle) }
    }
}

impl Drop for NodeSequence {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: the handles are owned, and `launch` requires that launches have completed.
            unsafe {
                if !self.exec.is_null() {
                    let _ = driver.cuGraphExecDestroy(self.exec);
                }
                let _ = driver.cuGraphDestroy(self.graph);
            }
        }
    }
}

/// The address and the length of a list of one node, or of none.
fn as_list(node: &Option<sys::CUgraphNode>) -> (*const sys::CUgraphNode, usize) {
    node.as_ref().map_or((null(), 0), |node| (std::ptr::from_ref(node), 1))
}
