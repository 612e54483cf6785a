// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels as one launch of a CUDA graph.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use arrayvec::ArrayVec;
use cudarc::driver::sys;

use super::graph_config::{GraphConfig, KernelNode, Reads};
use super::interface::{HEADER_BYTES, KernelParams, SORT_STATE_BYTES};
use super::interface::{blocks_per_group, sort_state_offset};
use super::kernels::Kernels;
use super::layout_params::{ColumnParams, LayoutParams};
use super::mask_params::MaskParams;
use super::merging::{ByColumnParams, MergeParams};
use crate::device::{DeviceBuffer, DriverError, Kernel, NodeSequence, Start, Stream};
use crate::engine::ResultMemory;

/// The parameters that change from launch to launch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LaunchParams {
    pub kernel: KernelParams,
    /// The number of groups of images.
    pub groups: u32,
    /// For all kernels except [`DecodeKernel::Plain`](super::kernels::DecodeKernel::Plain).
    pub layout: LayoutParams,
    /// For layouts with columns.
    pub columns: ColumnParams,
    /// For methods that change boxes or scores.
    pub merge: MergeParams,
    /// For methods that read a column.
    pub by_column: ByColumnParams,
    /// For layouts with prototypes.
    pub masks: MaskParams,
    /// The memory that the last kernels write to.
    pub results: ResultMemory,
    /// The device address of the masks that they write.
    pub mask_words: u64,
}

/// An instantiated graph, with its kernels' workspace.
#[derive(Debug)]
pub(super) struct Graph {
    // Dropped first, because its nodes refer to the workspace and the kernels.
    sequence: NodeSequence,
    kernels: Arc<Kernels>,
    pub config: GraphConfig,
    workspace: DeviceBuffer,
    /// The address of the workspace, and the bytes of a group's part of it: parameters of all kernels.
    memory: [u64; 2],
    nodes: Vec<Node>,
    /// The parameters of the nodes. Their grids have a row for each group; decode's depends on the images instead.
    params: LaunchParams,
}

// SAFETY: the nodes' handles may be used from any thread in which their context is current.
unsafe impl Send for Graph {}

/// A node of a graph.
#[derive(Debug)]
struct Node {
    kernel: KernelNode,
    function: Kernel,
    handle: sys::CUgraphNode,
}

impl Graph {
    /// A graph. Its memory is set to zero in the order of `stream`.
    pub fn new(
        kernels: &Arc<Kernels>,
        stream: &Stream,
        config: GraphConfig,
    ) -> Result<Self, DriverError> {
        let device = &kernels.device;
        let stride = config.workspace_bytes();
        let workspace = DeviceBuffer::new(device, stride * config.groups as usize)?;
        // Headers must be zero. The remaining memory is set to zero only because some lanes load
        // unwritten words without using them, and tools would report such loads.
        stream.zero(&workspace)?;
        let mut graph = Self {
            sequence: NodeSequence::new(device)?,
            kernels: kernels.clone(),
            config,
            memory: [workspace.address(), stride as u64],
            workspace,
            nodes: Vec::new(),
            params: LaunchParams { groups: config.groups, ..LaunchParams::default() },
        };
        for kernel in config.kernels() {
            // The launch sets decode's parameters and its grid.
            let function = kernels.kernel(kernel.function)?;
            let mut node = Node { kernel, function, handle: null_mut() };
            node.handle = graph.add_kernel(&graph.sequence, &node, !graph.nodes.is_empty())?;
            graph.nodes.push(node);
        }
        graph.sequence.instantiate()?;
        Ok(graph)
    }

    /// Adds the kernel of `node`, with the parameters of the last launch, to `sequence`, and returns its node.
    /// If the GPU supports it, a kernel that follows another one starts before the other one has
    /// completed.
    fn add_kernel(
        &self,
        sequence: &NodeSequence,
        node: &Node,
        follows_kernel: bool,
    ) -> Result<sys::CUgraphNode, DriverError> {
        let is_programmatic = follows_kernel && self.kernels.programmatic_launch;
        let start = if is_programmatic { Start::Programmatic } else { Start::AfterCompletion };
        self.with_node_params(node, &self.params, |params| {
            // SAFETY: the parameters match the kernel's signature.
            unsafe { sequence.add_kernel(params, start) }
        })
    }

    /// The names of the kernels, in the order of their launches.
    pub fn kernel_names(&self) -> Vec<String> {
        let name = |node: &Node| node.kernel.function.to_string_lossy().into_owned();
        self.nodes.iter().map(name).collect()
    }

    /// A graph that runs the first `count` kernels of the last launch `times` times. The last
    /// kernels normally reset the counters in the workspace; with `resets`, a memset before each
    /// repetition resets them.
    pub fn repeated(
        &self,
        count: usize,
        times: u32,
        resets: bool,
    ) -> Result<NodeSequence, DriverError> {
        let mut sequence = NodeSequence::new(&self.kernels.device)?;
        let GraphConfig { capacity, sort, .. } = self.config;
        let (first, groups) = (self.workspace.address(), self.params.groups as usize);
        let stride = self.config.workspace_bytes();
        for _ in 0..times {
            if resets {
                sequence.add_memset(first, 0, [HEADER_BYTES, groups, stride])?;
            }
            if resets && capacity > sort.limit {
                let sort_state = first + sort_state_offset(capacity) as u64;
                sequence.add_memset(sort_state, 0, [SORT_STATE_BYTES, groups, stride])?;
            }
            for (i, node) in self.nodes[..count].iter().enumerate() {
                self.add_kernel(&sequence, node, i > 0)?;
            }
        }
        sequence.instantiate()?;
        Ok(sequence)
    }

    /// The grid of a launch of a kernel with `params`, in blocks and rows, and the bytes of each parameter.
    fn launch_of<'p>(
        &'p self,
        kernel: &'p KernelNode,
        params: &'p LaunchParams,
    ) -> ([u32; 2], ArrayVec<&'p [u8], 6>) {
        let groups = params.groups.max(1);
        let multiprocessors = self.kernels.device.multiprocessors;
        let [per_multiprocessor, most] = kernel.blocks;
        let images = params.kernel.images.max(1);
        let grid = match kernel.reads {
            Reads::Decode => [params.kernel.decode_blocks(), images],
            Reads::DecodeLayout => [params.layout.blocks(), images],
            _ => [blocks_per_group(per_multiprocessor * multiprocessors, most, groups), groups],
        };
        let mut parameters: ArrayVec<_, 6> = self.memory.iter().map(bytemuck::bytes_of).collect();
        let columns = bytemuck::bytes_of(&params.columns);
        let ResultMemory { counts, detections, columns: rows } = &params.results;
        let [headers, detections, rows, mask_words] =
            [counts, detections, rows, &params.mask_words].map(bytemuck::bytes_of);
        match &kernel.reads {
            Reads::Workspace => {}
            Reads::Decode => parameters.insert(0, bytemuck::bytes_of(&params.kernel)),
            Reads::DecodeLayout => {
                parameters.insert(0, bytemuck::bytes_of(&params.kernel));
                parameters.push(bytemuck::bytes_of(&params.layout));
            }
            Reads::Chunk(chunk) => parameters.push(bytemuck::bytes_of(chunk)),
            Reads::Merge => parameters.push(bytemuck::bytes_of(&params.merge)),
            Reads::ByColumn => parameters.extend([bytemuck::bytes_of(&params.by_column), columns]),
            Reads::Masks => parameters.extend([bytemuck::bytes_of(&params.masks), mask_words]),
            Reads::Publish => parameters.extend([headers, detections]),
            Reads::PublishColumns => parameters.extend([headers, detections, columns, rows]),
        }
        (grid, parameters)
    }

    /// Calls `act` with the function, grid and parameters of `node` for `params`.
    fn with_node_params<T>(
        &self,
        node: &Node,
        params: &LaunchParams,
        act: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> T,
    ) -> T {
        let ([blocks, rows], parameters) = self.launch_of(&node.kernel, params);
        let mut addresses: ArrayVec<*mut c_void, 6> =
            parameters.iter().map(|value| value.as_ptr().cast_mut().cast()).collect();
        let threads = [node.kernel.threads, 1, 1];
        act(&node.function.node([blocks, rows, 1], threads, &mut addresses))
    }

    /// Launches the kernels with `params`, asynchronously, in stream order.
    pub fn launch(&mut self, stream: &Stream, params: &LaunchParams) -> Result<(), DriverError> {
        debug_assert!(params.groups <= self.config.groups, "the graph holds the launch");
        let driver = self.kernels.device.enter()?;
        // If this fails, the engine drops the graph.
        for node in &self.nodes {
            if self.launch_of(&node.kernel, params) != self.launch_of(&node.kernel, &self.params) {
                self.with_node_params(node, params, |params| {
                    // SAFETY: the parameters match the kernel's signature.
                    unsafe { self.sequence.set_kernel(&driver, node.handle, params) }
                })?;
            }
        }
        self.params = *params;
        // SAFETY: the addresses in `params` belong to tensors that the caller keeps until the
        // stream has completed the launch. The kernels access no memory beyond the tensors, the
        // workspace and the results.
        unsafe { self.sequence.launch(&driver, stream) }
    }

    /// Submits the kernels with `params` one by one, in stream order. A stream that is being
    /// captured cannot launch a graph.
    pub fn launch_kernels(
        &self,
        stream: &Stream,
        params: &LaunchParams,
    ) -> Result<(), DriverError> {
        let driver = self.kernels.device.enter()?;
        for node in &self.nodes {
            self.with_node_params(node, params, |node| {
                // SAFETY: see `launch`; the parameters match the kernel's signature.
                unsafe { stream.launch(&driver, node) }
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::interface::SortLimits;
    use super::super::kernels::DecodeKernel;
    use super::super::mask_params::{FRAME_MASKS, PROTOTYPE_MASKS};
    use super::super::merging;
    use super::super::results::{ResultSize, Results};
    use super::*;
    use crate::device::PinnedBuffer;
    use crate::engine::{Detection, Method};
    use crate::tensor::ElementType;

    const SQUARES: u32 = 60;

    /// A graph with its results, and squares in device memory.
    struct Fixture {
        graph: Graph,
        results: Results,
        squares: DeviceBuffer,
        stream: Stream,
    }

    impl Fixture {
        fn new(groups: u32, capacity: u32) -> Self {
            let kernels = Kernels::open(0).unwrap();
            let device = &kernels.device;
            let stream = Stream::new(device).unwrap();
            let mut results = Results::new(device).unwrap();
            let size = ResultSize { capacity, groups, column_components: 0, mask_words: 0 };
            results.make_room(size).unwrap();
            let config = GraphConfig {
                capacity,
                groups,
                sort: SortLimits::DEFAULT,
                decode: DecodeKernel::Plain([ElementType::F32; 2]),
                multi_label: false,
                merge: &[],
                column_components: 0,
                masks: None,
                mask_words: 0,
            };
            let graph = Graph::new(&kernels, &stream, config).unwrap();

            let mut random = fastrand::Rng::with_seed(7);
            let numbers: Vec<f32> = (0..groups * SQUARES)
                .flat_map(|_| {
                    let (x, y, side) = (random.f32() * 90.0, random.f32() * 60.0, 20.0);
                    [x, y, side + random.f32() * 20.0, random.f32()]
                })
                .collect();
            let bytes: &[u8] = bytemuck::cast_slice(&numbers);
            let mut pinned = PinnedBuffer::new(device, bytes.len()).unwrap();
            let squares = DeviceBuffer::new(device, bytes.len()).unwrap();
            pinned.as_mut_slice().copy_from_slice(bytes);
            stream.upload(&pinned, &squares, bytes.len()).unwrap();
            stream.synchronize().unwrap();
            Self { graph, results, squares, stream }
        }

        /// The candidates and the survivors of each of `images`, starting at image `first`.
        fn run(&mut self, first: u32, images: u32) -> Vec<(u32, Vec<Detection>)> {
            self.run_by(first, images, Graph::launch)
        }

        fn run_by(
            &mut self,
            first: u32,
            images: u32,
            launch: impl Fn(&mut Graph, &Stream, &LaunchParams) -> Result<(), DriverError>,
        ) -> Vec<(u32, Vec<Detection>)> {
            let address = self.squares.address() + u64::from(first * SQUARES * 16);
            let kernel = KernelParams::of_squares(address, images, SQUARES, &self.graph.config);
            let results = self.results.addresses();
            let params =
                LaunchParams { kernel, groups: images, results, ..LaunchParams::default() };
            self.results.clear(images);
            launch(&mut self.graph, &self.stream, &params).unwrap();
            self.results.wait(&self.stream, images).unwrap();
            let of_image = |image| {
                let header = self.results.header(image);
                (header.candidates, self.results.survivors(image).to_vec())
            };
            (0..images).map(of_image).collect()
        }
    }

    #[test]
    fn the_files_have_the_kernels_of_all_graphs_and_no_others() {
        use ElementType::{F16, F32};
        let plain = [[F32, F32], [F32, F16], [F16, F32], [F16, F16]].map(DecodeKernel::Plain);
        let decode = plain.into_iter().chain([DecodeKernel::Layout, DecodeKernel::Oriented]);
        let mut names = BTreeSet::new();
        for (decode, multi_label, groups) in
            decode.flat_map(|decode| [(decode, false, 1), (decode, true, 2)])
        {
            // Each of the choices that follow has separate kernels, whatever the others are.
            let masks = [None, Some(PROTOTYPE_MASKS), Some(FRAME_MASKS)];
            for (method, masks) in Method::ALL.into_iter().zip(masks.into_iter().cycle()) {
                for column_components in [0, 1] {
                    let config = GraphConfig {
                        capacity: 1 << 20,
                        groups,
                        sort: SortLimits::DEFAULT,
                        decode,
                        multi_label,
                        merge: merging::kernels(method).1,
                        column_components,
                        masks,
                        mask_words: 0,
                    };
                    names.extend(
                        config.kernels().iter().map(|kernel| kernel.function.to_str().unwrap()),
                    );
                }
            }
        }
        names.insert(super::super::on_device::ANCHORS_KERNEL.to_str().unwrap());
        for file in super::super::kernels::tests::entries() {
            assert_eq!(file.into_iter().collect::<BTreeSet<_>>(), names);
        }
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn batches_up_to_a_graphs_images_give_what_single_images_give() {
        let mut fixture = Fixture::new(5, 64);
        let single: Vec<_> = (0..5).flat_map(|image| fixture.run(image, 1)).collect();
        assert!(single.iter().all(|(candidates, _)| *candidates == SQUARES));
        assert!(
            single.iter().all(|(_, survivors)| (2..SQUARES as usize).contains(&survivors.len()))
        );
        for images in [5, 2, 5, 3, 1, 4] {
            assert_eq!(fixture.run(0, images), single[..images as usize], "{images} images");
        }
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn kernels_submitted_one_by_one_give_what_the_graph_gives() {
        let mut fixture = Fixture::new(5, 64);
        for images in [5, 1, 3, 2] {
            let expected = fixture.run(0, images);
            let by_kernels = |graph: &mut Graph, stream: &Stream, params: &LaunchParams| {
                graph.launch_kernels(stream, params)
            };
            assert_eq!(fixture.run_by(0, images, by_kernels), expected, "{images} images");
        }
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn images_with_more_candidates_than_capacity_are_counted_and_have_no_survivors() {
        let mut fixture = Fixture::new(3, SQUARES - 1);
        for images in [3, 1, 2] {
            let expected = vec![(SQUARES, Vec::new()); images as usize];
            assert_eq!(fixture.run(0, images), expected, "{images} images");
        }
    }
}
