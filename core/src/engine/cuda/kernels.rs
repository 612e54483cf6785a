// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels, loaded on a GPU.
//!
//! In: the name of a kernel. Out: the kernel. The driver compiles PTX when it is loaded, which takes seconds for all
//! kernels together, until it has them in its cache. So each kernel is loaded separately, when a graph first has it.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys;

use crate::device::{
    CompressedKernels, Device, DeviceError, DriverError, Kernel, Module, compressed,
};
use crate::tensor::ElementType;

/// Kernels for GPUs with at least a certain compute capability.
#[derive(Debug)]
pub(super) struct KernelBinary {
    pub name: &'static str,
    from: (i32, i32),
    /// Machine code or PTX.
    kernels: CompressedKernels,
    /// True if it is compiled for a single architecture. Otherwise it runs on all architectures
    /// from `from` on.
    is_native: bool,
}

impl KernelBinary {
    /// The bytes that the driver loads for the kernel `name`: machine code whole, PTX with this kernel alone.
    fn image(&self, name: &CStr) -> Cow<'_, [u8]> {
        if self.is_native {
            return Cow::Borrowed(self.kernels.bytes());
        }
        Cow::Owned(self.kernels.ptx_of(name).into_bytes_with_nul())
    }
}

/// The lowest compute capability at which the kernels use programmatic dependent launch
/// (`grid_dependency_wait`, kernels/portable.cuh).
const PROGRAMMATIC_LAUNCH_FROM: (i32, i32) = (9, 0);

/// The file with which the other two files of PTX are compressed.
static SM_80: &[u8] = compressed!("nmsfilter.sm_80.ptx");

/// In order of preference: machine code from build.rs, then the checked-in PTX (kernels/build.sh).
static KERNEL_BINARIES: [KernelBinary; 3 + cfg!(nmsfilter_native) as usize] = [
    #[cfg(nmsfilter_native)]
    KernelBinary {
        name: "machine code",
        from: (6, 0),
        kernels: CompressedKernels::new(compressed!("nmsfilter.cubin")),
        is_native: true,
    },
    KernelBinary {
        name: "PTX sm_90",
        from: (9, 0),
        kernels: CompressedKernels::with_similar(compressed!("nmsfilter.sm_90.ptx"), SM_80),
        is_native: false,
    },
    KernelBinary {
        name: "PTX sm_80",
        from: (8, 0),
        kernels: CompressedKernels::new(SM_80),
        is_native: false,
    },
    KernelBinary {
        name: "PTX sm_60",
        from: (6, 0),
        kernels: CompressedKernels::with_similar(compressed!("nmsfilter.sm_60.ptx"), SM_80),
        is_native: false,
    },
];

/// Errors that the driver returns for machine code that was compiled for another GPU.
const OF_ANOTHER_GPU: [u32; 2] = [
    sys::CUresult::CUDA_ERROR_INVALID_IMAGE as u32,
    sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU as u32,
];

/// Selects a launch's decode kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeKernel {
    /// For plain layouts: the types of the boxes and of the scores, each F32 or F16.
    Plain([ElementType; 2]),
    /// For any layout of upright boxes.
    Layout,
    /// For any layout of oriented boxes.
    Oriented,
}

impl DecodeKernel {
    /// The kernel's function.
    pub fn function(self, multi_label: bool) -> &'static CStr {
        use ElementType::{F16, F32};
        match (self, multi_label) {
            (Self::Plain([F32, F32]), false) => c"decode_f32_f32",
            (Self::Plain([F32, F16]), false) => c"decode_f32_f16",
            (Self::Plain([F16, F32]), false) => c"decode_f16_f32",
            (Self::Plain([F16, F16]), false) => c"decode_f16_f16",
            (Self::Plain([F32, F32]), true) => c"decode_multi_f32_f32",
            (Self::Plain([F32, F16]), true) => c"decode_multi_f32_f16",
            (Self::Plain([F16, F32]), true) => c"decode_multi_f16_f32",
            (Self::Plain([F16, F16]), true) => c"decode_multi_f16_f16",
            (Self::Plain(_), _) => unreachable!("a plain layout has floating-point numbers"),
            (Self::Layout, false) => c"decode_layout",
            (Self::Layout, true) => c"decode_layout_multi",
            (Self::Oriented, false) => c"decode_oriented",
            (Self::Oriented, true) => c"decode_oriented_multi",
        }
    }
}

/// The kernel that shows whether the GPU takes a binary: one that takes little time to compile.
const FIRST: &CStr = c"publish";

/// The kernels on one GPU, shared by all engines on it.
#[derive(Debug)]
pub(super) struct Kernels {
    pub device: Arc<Device>,
    /// The binary that the kernels are from.
    pub binary: &'static KernelBinary,
    /// True if each kernel waits for the preceding one with a grid dependency wait.
    pub programmatic_launch: bool,
    /// The kernels that were loaded so far.
    loaded: Mutex<Vec<(&'static CStr, Kernel)>>,
}

/// The kernels of each GPU that is in use.
static OPEN: Mutex<Vec<Weak<Kernels>>> = Mutex::new(Vec::new());

impl Kernels {
    /// The kernels of GPU number `ordinal`. Loads them if needed.
    pub fn open(ordinal: u32) -> Result<Arc<Self>, DeviceError> {
        let mut loaded = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
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
        let binaries = KERNEL_BINARIES.iter().filter(|binary| device.capability >= binary.from);
        let mut refused = None;
        for binary in binaries {
            let target = if binary.is_native { device.capability } else { binary.from };
            let supports_edge_data = device.enter()?.supports_edge_data();
            let kernels = Self {
                device: device.clone(),
                binary,
                programmatic_launch: target >= PROGRAMMATIC_LAUNCH_FROM && supports_edge_data,
                loaded: Mutex::default(),
            };
            match kernels.kernel(FIRST) {
                Ok(_) => return Ok(kernels),
                Err(error) if !OF_ANOTHER_GPU.contains(&error.code) => return Err(error),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.expect("a device is from 6.0 on, and so is the last binary"))
    }

    /// The kernel `name`. Loads it if needed.
    ///
    /// # Errors
    /// If the driver cannot compile or load the kernel.
    pub fn kernel(&self, name: &'static CStr) -> Result<Kernel, DriverError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kernel)) = loaded.iter().find(|(known, _)| *known == name) {
            return Ok(kernel.clone());
        }
        // Machine code has all kernels in one module.
        let module = match loaded.first() {
            Some((_, kernel)) if self.binary.is_native => kernel.module.clone(),
            // SAFETY: PTX is a C string, and machine code is as the compiler wrote it.
            _ => unsafe { Module::of_image(&self.device, &self.binary.image(name)) }?,
        };
        let kernel = module.kernel(name)?;
        loaded.push((name, kernel.clone()));
        Ok(kernel)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The names of the kernels in each file of PTX.
    pub fn entries() -> impl Iterator<Item = Vec<&'static str>> {
        let ptx = KERNEL_BINARIES.iter().filter(|binary| !binary.is_native);
        ptx.map(|binary| binary.kernels.entries().collect())
    }

    #[test]
    fn decompressed_ptx_is_the_file_that_was_compressed() {
        for binary in KERNEL_BINARIES.iter().filter(|binary| !binary.is_native) {
            let architecture = binary.name.strip_prefix("PTX ").unwrap();
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/ptx");
            let file = std::fs::read(format!("{folder}/nmsfilter.{architecture}.ptx")).unwrap();
            assert!(binary.kernels.ptx().to_bytes() == file, "{}", binary.name);
        }
    }

    #[test]
    fn no_kernel_refers_to_code_or_memory_of_another() {
        let ptx = KERNEL_BINARIES.iter().filter(|binary| !binary.is_native);
        for binary in ptx {
            let text = binary.kernels.ptx().to_str().unwrap();
            // Functions and variables outside of kernels; shared memory is declared before the first kernel.
            let outside = text.lines().skip_while(|line| !line.starts_with(".visible"));
            let declared = outside.filter(|line| {
                line.starts_with('.')
                    && !line.starts_with(".visible .entry ")
                    && !line.starts_with(".maxntid")
                    && !line.starts_with(".minnctapersm")
            });
            assert_eq!(declared.collect::<Vec<_>>(), [""; 0], "{}", binary.name);
            assert!(!text.contains("call"), "{}", binary.name);
        }
    }
}
