//! The CUDA kernels, compiled as host C++ and run over host memory: see cuda_on_host.h.
#![warn(missing_docs)]

use std::ffi::c_void;

/// interface.cuh: `Field`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Field {
    /// Address of number 0 of anchor 0; 0 where there is no field.
    pub address: u64,
    /// Elements from one anchor's numbers to the next anchor's.
    pub anchor_stride: u64,
    /// Elements from one of an anchor's numbers to the next.
    pub component_stride: u64,
}

/// interface.cuh: `Frame`, which says what each field is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "interface.cuh says it")]
pub struct Frame {
    pub boxes: Field,
    pub scores: Field,
    pub objectness: Field,
    pub class_thresholds: u64,
    pub listed: u32,
    pub threshold: f32,
    pub lowest_threshold: f32,
    pub anchors: u32,
    pub classes: u32,
    pub lanes: u32,
    pub box_format: u32,
    pub scale: [f32; 2],
    pub min_size: [f32; 2],
    pub max_size: [f32; 2],
    pub method: u32,
    pub overlap: u32,
    pub iou_threshold: f32,
    pub pixel_offset: f32,
    pub threshold_inclusive: u32,
    pub class_agnostic: u32,
    pub max_candidates: u32,
    pub max_detections: u32,
    pub sequence: u32,
}

/// interface.cuh: `Outcome`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "interface.cuh says it")]
pub struct Outcome {
    pub sequence: u32,
    pub candidates: u32,
    pub rejected: u32,
    pub survivors: u32,
    pub rounds: u32,
    reserved: [u32; 3],
}

const _: () = assert!(size_of::<Frame>() == 168 && size_of::<Outcome>() == 32);

unsafe extern "C" {
    fn nmsfilter_emulated_workspace_bytes(capacity: u32) -> u64;
    fn nmsfilter_emulated_outcome_bytes(capacity: u32) -> u64;
    fn nmsfilter_emulated_lanes(classes: u32) -> u32;
    fn nmsfilter_emulated_run(
        frame: *const Frame,
        boxes_are_f16: i32,
        scores_are_f16: i32,
        workspace: *mut c_void,
        outcome: *mut Outcome,
        multiprocessors: u32,
        resident: u32,
        seed: u64,
    );
    fn nmsfilter_emulated_paper(
        windows: *const f32,
        n: u32,
        theta: f32,
        matrix: *mut u8,
        survives: *mut u8,
        capacity: u32,
        k: u32,
        seed: u64,
    );
}

/// Threads that share an anchor of so many classes: `Frame::lanes`.
pub fn lanes_for(classes: u32) -> u32 {
    // SAFETY: takes and returns a number.
    unsafe { nmsfilter_emulated_lanes(classes) }
}

/// An imagined GPU.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// How many multiprocessors the launches are made for.
    pub multiprocessors: u32,
    /// How many blocks run at a time.
    pub resident: u32,
    /// What the order of threads is drawn from.
    pub seed: u64,
}

/// 256 bytes of memory, aligned as an allocation on a device is.
#[derive(Clone, Copy)]
#[repr(C, align(256))]
struct Chunk([u8; 256]);

/// Memory that kernels work in, for frames of up to some number of anchors.
pub struct Memory {
    capacity: u32,
    workspace: Vec<Chunk>,
    outcome: Vec<Chunk>,
}

impl Memory {
    /// Room for frames of up to `capacity` anchors; all but the header holds rubbish.
    pub fn new(capacity: u32) -> Self {
        // SAFETY: take and return numbers.
        let (workspace, outcome) = unsafe {
            (
                nmsfilter_emulated_workspace_bytes(capacity),
                nmsfilter_emulated_outcome_bytes(capacity),
            )
        };
        let rubbish = |bytes: u64| vec![Chunk([0xa5; 256]); bytes.div_ceil(256) as usize];
        let mut workspace = rubbish(workspace);
        workspace[..2].fill(Chunk([0; 256]));
        Self { capacity, workspace, outcome: rubbish(outcome) }
    }

    /// How many anchors there is room for.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Runs the kernels; returns the counts and the survivors as they lie in memory, each the
    /// bits of a `Detection`.
    ///
    /// # Safety
    /// The frame's addresses must be those of host memory that holds what the frame describes, in
    /// half precision where so stated.
    pub unsafe fn run(
        &mut self,
        frame: &Frame,
        boxes_are_f16: bool,
        scores_are_f16: bool,
        device: Device,
    ) -> (Outcome, &[[u32; 7]]) {
        assert!(frame.anchors <= self.capacity, "more anchors than there is room for");
        let outcome = self.outcome.as_mut_ptr().cast::<Outcome>();
        // SAFETY: workspace and outcome have the bytes and the alignment that the interface asks
        // for; the caller answers for the frame.
        unsafe {
            nmsfilter_emulated_run(
                frame,
                boxes_are_f16.into(),
                scores_are_f16.into(),
                self.workspace.as_mut_ptr().cast(),
                outcome,
                device.multiprocessors,
                device.resident,
                device.seed,
            );
        }
        // SAFETY: the kernels have written the outcome and as many detections as it says.
        unsafe {
            let survivors = outcome.add(1).cast::<[u32; 7]>();
            let outcome = outcome.read();
            (outcome, std::slice::from_raw_parts(survivors, outcome.survivors as usize))
        }
    }
}

/// Which of `windows` (left, top, side, score) the paper's own kernels keep, told that there is
/// room for `capacity`, a multiple of `32 * k`, and that a row is reduced in `k` partitions.
pub fn paper(windows: &[f32], theta: f32, capacity: u32, k: u32, seed: u64) -> Vec<bool> {
    let n = windows.len() / 4;
    let room = capacity as usize;
    assert!(n <= room && capacity.is_multiple_of(32 * k), "no room, or odd partitions");
    let mut padded = vec![[0.0f32; 4]; room];
    for (window, numbers) in padded.iter_mut().zip(windows.chunks_exact(4)) {
        window.copy_from_slice(numbers);
    }
    // float4 is aligned to 16 bytes.
    let mut aligned = vec![Chunk([0; 256]); (room * 16).div_ceil(256)];
    let mut matrix = vec![0u8; room * room];
    let mut survives = vec![0u8; room];
    // SAFETY: all four have the bytes that paper.cu asks for.
    unsafe {
        let to = aligned.as_mut_ptr().cast::<f32>();
        to.copy_from_nonoverlapping(padded.as_flattened().as_ptr(), room * 4);
        nmsfilter_emulated_paper(
            to,
            n as u32,
            theta,
            matrix.as_mut_ptr(),
            survives.as_mut_ptr(),
            capacity,
            k,
            seed,
        );
    }
    survives[..n].iter().map(|&survives| survives != 0).collect()
}
