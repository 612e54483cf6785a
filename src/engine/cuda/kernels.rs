//! The kernels, loaded on a GPU.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys;

use super::interface::Precision;
use crate::device::{Device, DeviceError, DriverError};

/// PTX that was built ahead, for GPUs from some compute capability on (kernels/build.sh).
struct Ptx {
    name: &'static str,
    from: (i32, i32),
    text: &'static str,
}

/// The best last.
const PTX: [Ptx; 2] = [
    Ptx {
        name: "sm_53",
        from: (5, 3),
        text: include_str!("../../../kernels/ptx/nmsfilter.sm_53.ptx"),
    },
    Ptx {
        name: "sm_80",
        from: (8, 0),
        text: include_str!("../../../kernels/ptx/nmsfilter.sm_80.ptx"),
    },
];

/// The kernels on one GPU, which every engine there shares.
#[derive(Debug)]
pub(super) struct Kernels {
    device: Arc<Device>,
    module: sys::CUmodule,
    /// Which PTX they come from.
    pub ptx: &'static str,
    /// By the precision of the boxes, then of the scores.
    decode: [[sys::CUfunction; 2]; 2],
    pub map: sys::CUfunction,
    pub reduce: sys::CUfunction,
    pub publish: sys::CUfunction,
}

// SAFETY: handles may be used from any thread in whose context they are.
unsafe impl Send for Kernels {}
// SAFETY: as above; nothing is changed through them.
unsafe impl Sync for Kernels {}

/// The kernels in use.
static LOADED: Mutex<Vec<Weak<Kernels>>> = Mutex::new(Vec::new());

impl Kernels {
    /// Those of GPU number `ordinal`: the ones in use, or loaded.
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
        let fits = |ptx: &&Ptx| device.capability() >= ptx.from;
        let ptx = PTX.iter().rfind(fits).expect("a device is from 5.3 on");
        let text = CString::new(ptx.text).expect("PTX is text");
        let driver = device.enter()?;
        let mut module = null_mut();
        // SAFETY: the address is that of a handle, the text ends with a zero; `drop` unloads.
        unsafe { driver.cuModuleLoadData(&mut module, text.as_ptr().cast()) }?;
        let mut kernels = Self {
            device: device.clone(),
            module,
            ptx: ptx.name,
            decode: [[null_mut(); 2]; 2],
            map: null_mut(),
            reduce: null_mut(),
            publish: null_mut(),
        };
        let function = |name: &CStr| {
            let mut function = null_mut();
            // SAFETY: the address is that of a handle; the module is loaded.
            unsafe { driver.cuModuleGetFunction(&mut function, module, name.as_ptr()) }?;
            Ok::<_, DriverError>(function)
        };
        kernels.decode = [
            [function(c"decode_f32_f32")?, function(c"decode_f32_f16")?],
            [function(c"decode_f16_f32")?, function(c"decode_f16_f16")?],
        ];
        kernels.map = function(c"map")?;
        kernels.reduce = function(c"reduce")?;
        kernels.publish = function(c"publish")?;
        Ok(kernels)
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The one that decodes boxes and scores of these precisions.
    pub fn decode(&self, [boxes, scores]: [Precision; 2]) -> sys::CUfunction {
        self.decode[boxes as usize][scores as usize]
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        if let Ok(driver) = self.device.enter() {
            // SAFETY: it was loaded in this context, and whoever runs its kernels holds it.
            let _ = unsafe { driver.cuModuleUnload(self.module) };
        }
    }
}
