// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels, loaded on a GPU.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys;

use super::interface::Precision;
use super::mask_params::MaskKernel;
use super::merging::MergeKernel;
use crate::device::{CompressedKernels, Device, DeviceError, DriverError, compressed_kernels};

/// Kernels for GPUs with at least a certain compute capability.
struct KernelBinary {
    name: &'static str,
    from: (i32, i32),
    /// Machine code or PTX.
    kernels: CompressedKernels,
    /// True if it is compiled for a single architecture. Otherwise it runs on all architectures
    /// from `from` on.
    is_native: bool,
}

/// The lowest compute capability at which the kernels use programmatic dependent launch
/// (`grid_dependency_wait`, kernels/portable.cuh).
const PROGRAMMATIC_LAUNCH_FROM: (i32, i32) = (9, 0);

/// In order of preference: machine code from build.rs, then the checked-in PTX (kernels/build.sh).
static KERNEL_BINARIES: [KernelBinary; 3 + cfg!(nmsfilter_native) as usize] = [
    #[cfg(nmsfilter_native)]
    KernelBinary {
        name: "machine code",
        from: (6, 0),
        kernels: compressed_kernels!("nmsfilter.cubin"),
        is_native: true,
    },
    KernelBinary {
        name: "PTX sm_90",
        from: (9, 0),
        kernels: compressed_kernels!("nmsfilter.sm_90.ptx"),
        is_native: false,
    },
    KernelBinary {
        name: "PTX sm_80",
        from: (8, 0),
        kernels: compressed_kernels!("nmsfilter.sm_80.ptx"),
        is_native: false,
    },
    KernelBinary {
        name: "PTX sm_60",
        from: (6, 0),
        kernels: compressed_kernels!("nmsfilter.sm_60.ptx"),
        is_native: false,
    },
];

/// Errors that the driver returns for machine code that was compiled for another GPU.
const OF_ANOTHER_GPU: [u32; 2] = [
    sys::CUresult::CUDA_ERROR_INVALID_IMAGE as u32,
    sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU as u32,
];

/// The kernels after decode, for a single group of images or for batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapReducePublish {
    pub map: sys::CUfunction,
    pub reduce: sys::CUfunction,
    pub publish: sys::CUfunction,
    /// Also publishes columns.
    pub publish_columns: sys::CUfunction,
}

/// The kernels for groups with sorted candidates, single groups and batches alike, in the order of
/// their launches. The kernels in `chunk` are launched for each chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sort {
    pub count: sys::CUfunction,
    pub scatter: sys::CUfunction,
    pub rank: sys::CUfunction,
    pub chunk_filter: sys::CUfunction,
    pub chunk_map: sys::CUfunction,
    pub chunk_reduce: sys::CUfunction,
}

/// Selects a launch's decode kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeKernel {
    /// For plain layouts: the precision of the boxes, then the precision of the scores.
    Plain([Precision; 2]),
    /// For any layout of upright boxes.
    Layout,
    /// For any layout of oriented boxes.
    Oriented,
}

/// The kernels on one GPU, shared by all engines on it.
#[derive(Debug)]
pub(super) struct Kernels {
    device: Arc<Device>,
    module: sys::CUmodule,
    /// The binary that was loaded.
    pub binary: &'static str,
    /// True if each kernel waits for the preceding one with a grid dependency wait.
    pub programmatic_launch: bool,
    /// Indexed by the precision of the boxes, then by the precision of the scores.
    decode: [[sys::CUfunction; 2]; 2],
    /// The decode kernels with `multi_label`, indexed like `decode`.
    decode_multi: [[sys::CUfunction; 2]; 2],
    /// For any layout of upright boxes; without and with `multi_label`.
    decode_layout: [sys::CUfunction; 2],
    /// The kernel for pixels of the prototypes, then the kernel for pixels of the frame.
    masks: [sys::CUfunction; 2],
    /// For any layout of oriented boxes; without and with `multi_label`.
    decode_oriented: [sys::CUfunction; 2],
    single: MapReducePublish,
    batch: MapReducePublish,
    /// Map and reduce for oriented boxes, for any number of groups.
    oriented: [sys::CUfunction; 2],
    pub sort: Sort,
    /// Indexed by the number of the kernel.
    merge: [sys::CUfunction; MergeKernel::COUNT],
}

// SAFETY: handles may be used from any thread in which their context is current.
unsafe impl Send for Kernels {}
// SAFETY: see `Send`; nothing is changed through the handles.
unsafe impl Sync for Kernels {}

/// The kernels that are currently loaded.
static LOADED: Mutex<Vec<Weak<Kernels>>> = Mutex::new(Vec::new());

impl Kernels {
    /// The kernels of GPU number `ordinal`. Loads them if needed.
    pub fn open(ordinal: u32) -> Result<Arc<Self>, DeviceError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|kernels| kernels.strong_count() > 0);
        let known = loaded.iter().filter_map(Weak::upgrade);
        if let Some(kernels) = known.into_iter().find(|k| k.device.ordinal() == ordinal) {
            return Ok(kernels);
        }
        let kernels = Arc::new(Self::load(Device::open(ordinal)?)?);
        loaded.push(Arc::downgrade(&kernels));
        Ok(kernels)
    }

    fn load(device: Arc<Device>) -> Result<Self, DriverError> {
        let driver = device.enter()?;
        let mut binaries =
            KERNEL_BINARIES.iter().filter(|binary| device.capability() >= binary.from);
        let mut refused = None;
        let (binary, module) = loop {
            let Some(binary) = binaries.next() else {
                return Err(refused.expect("a device is from 6.0 on, and so is the last binary"));
            };
            let mut module = null_mut();
            let bytes = binary.kernels.bytes();
            // SAFETY: `module` is a valid handle to write to, and the binary is complete; `drop`
            // unloads it.
            match unsafe { driver.cuModuleLoadData(&mut module, bytes.as_ptr().cast()) } {
                Ok(()) => break (binary, module),
                Err(error) if !OF_ANOTHER_GPU.contains(&error.code) => return Err(error),
                Err(error) => refused = Some(error),
            }
        };
        let target = if binary.is_native { device.capability() } else { binary.from };
        let unknown = MapReducePublish {
            map: null_mut(),
            reduce: null_mut(),
            publish: null_mut(),
            publish_columns: null_mut(),
        };
        let mut kernels = Self {
            device: device.clone(),
            module,
            binary: binary.name,
            programmatic_launch: target >= PROGRAMMATIC_LAUNCH_FROM && driver.supports_edge_data(),
            decode: [[null_mut(); 2]; 2],
            decode_multi: [[null_mut(); 2]; 2],
            decode_layout: [null_mut(); 2],
            masks: [null_mut(); 2],
            decode_oriented: [null_mut(); 2],
            single: unknown,
            batch: unknown,
            oriented: [null_mut(); 2],
            sort: Sort {
                count: null_mut(),
                scatter: null_mut(),
                rank: null_mut(),
                chunk_filter: null_mut(),
                chunk_map: null_mut(),
                chunk_reduce: null_mut(),
            },
            merge: [null_mut(); MergeKernel::COUNT],
        };
        let function = |name: &CStr| {
            let mut function = null_mut();
            // SAFETY: `function` is a valid handle to write to; the module is loaded.
            unsafe { driver.cuModuleGetFunction(&mut function, module, name.as_ptr()) }?;
            Ok::<_, DriverError>(function)
        };
        kernels.decode = [
            [function(c"decode_f32_f32")?, function(c"decode_f32_f16")?],
            [function(c"decode_f16_f32")?, function(c"decode_f16_f16")?],
        ];
        kernels.decode_multi = [
            [function(c"decode_multi_f32_f32")?, function(c"decode_multi_f32_f16")?],
            [function(c"decode_multi_f16_f32")?, function(c"decode_multi_f16_f16")?],
        ];
        kernels.decode_layout = [function(c"decode_layout")?, function(c"decode_layout_multi")?];
        kernels.masks = [function(c"masks")?, function(c"frame_masks")?];
        kernels.single = MapReducePublish {
            map: function(c"map")?,
            reduce: function(c"reduce")?,
            publish: function(c"publish")?,
            publish_columns: function(c"publish_columns")?,
        };
        kernels.batch = MapReducePublish {
            map: function(c"map_batch")?,
            reduce: function(c"reduce_batch")?,
            publish: function(c"publish_batch")?,
            publish_columns: function(c"publish_columns_batch")?,
        };
        kernels.decode_oriented =
            [function(c"decode_oriented")?, function(c"decode_oriented_multi")?];
        kernels.oriented = [function(c"map_oriented")?, function(c"reduce_oriented")?];
        kernels.sort = Sort {
            count: function(c"sort_count")?,
            scatter: function(c"sort_scatter")?,
            rank: function(c"sort_rank")?,
            chunk_filter: function(c"chunk_filter")?,
            chunk_map: function(c"chunk_map")?,
            chunk_reduce: function(c"chunk_reduce")?,
        };
        for kernel in MergeKernel::ALL {
            kernels.merge[kernel as usize] = function(kernel.function())?;
        }
        Ok(kernels)
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub fn decode(&self, kernel: DecodeKernel, multi_label: bool) -> sys::CUfunction {
        match kernel {
            DecodeKernel::Plain([boxes, scores]) => {
                let all = if multi_label { &self.decode_multi } else { &self.decode };
                all[boxes as usize][scores as usize]
            }
            DecodeKernel::Layout => self.decode_layout[usize::from(multi_label)],
            DecodeKernel::Oriented => self.decode_oriented[usize::from(multi_label)],
        }
    }

    pub fn masks(&self, kernel: MaskKernel) -> sys::CUfunction {
        self.masks[kernel as usize]
    }

    pub fn merge(&self, kernel: MergeKernel) -> sys::CUfunction {
        self.merge[kernel as usize]
    }

    /// The kernels after `decode` for graphs of up to `groups` groups. Kernels for batches can run
    /// a single group, too, but take a little longer.
    pub fn map_reduce_publish(&self, decode: DecodeKernel, groups: u32) -> MapReducePublish {
        let of_upright = if groups <= 1 { self.single } else { self.batch };
        match decode {
            DecodeKernel::Plain(_) | DecodeKernel::Layout => of_upright,
            DecodeKernel::Oriented => {
                let [map, reduce] = self.oriented;
                MapReducePublish { map, reduce, ..of_upright }
            }
        }
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: the module was loaded in this context, and everything that runs its kernels
            // holds a reference to `self`.
            let _ = unsafe { driver.cuModuleUnload(self.module) };
        }
    }
}
