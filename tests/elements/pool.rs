// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffer pools that behave like pools of other elements.

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

/// How a pool handles configurations and buffers.
#[derive(Clone, Copy, Debug, Default)]
struct Behavior {
    min_buffers: u32,
    accepts: bool,
    short: bool,
}

#[derive(Default)]
pub struct Imp(std::sync::Mutex<Behavior>);

#[glib::object_subclass]
impl ObjectSubclass for Imp {
    const NAME: &'static str = "TestBufferPool";
    type Type = Pool;
    type ParentType = gst::BufferPool;
}

glib::wrapper! {
    pub struct Pool(ObjectSubclass<Imp>) @extends gst::BufferPool, gst::Object;
}

impl ObjectImpl for Imp {}
impl GstObjectImpl for Imp {}

impl BufferPoolImpl for Imp {
    fn set_config(&self, config: &mut gst::BufferPoolConfigRef) -> bool {
        let Behavior { min_buffers, accepts, .. } = *self.0.lock().unwrap();
        if !accepts {
            return false;
        }
        let (caps, size, min, max) = config.params().unwrap();
        config.set_params(caps.as_ref(), size, min.max(min_buffers), max);
        self.parent_set_config(config) && min >= min_buffers
    }

    fn alloc_buffer(
        &self,
        params: Option<&gst::BufferPoolAcquireParams>,
    ) -> Result<gst::Buffer, gst::FlowError> {
        let mut buffer = self.parent_alloc_buffer(params)?;
        if self.0.lock().unwrap().short {
            let short = buffer.make_mut();
            // The stride of one megabyte exceeds the memory.
            gst_video::VideoMeta::add(
                short,
                gst_video::VideoFrameFlags::empty(),
                gst_video::VideoFormat::Bgrx,
                64,
                36,
            )
            .unwrap();
            // SAFETY: the buffer is writable and has the metadata.
            unsafe {
                let meta = gst_video::ffi::gst_buffer_get_video_meta(short.as_mut_ptr());
                (*meta).stride[0] = 1 << 20;
            }
        }
        Ok(buffer)
    }
}

fn with(behavior: Behavior) -> Pool {
    let pool: Pool = glib::Object::new();
    *pool.imp().0.lock().unwrap() = behavior;
    pool
}

/// Makes a pool of at least `min_buffers` buffers. It adjusts configurations with fewer buffers.
pub fn adjusting(min_buffers: u32) -> Pool {
    with(Behavior { min_buffers, accepts: true, short: false })
}

/// Makes a pool that rejects all configurations.
pub fn rejecting() -> Pool {
    with(Behavior { min_buffers: 0, accepts: false, short: false })
}

/// Makes a pool whose buffers are too small for the strides in their metadata.
pub fn short() -> Pool {
    with(Behavior { min_buffers: 0, accepts: true, short: true })
}

/// Returns true if a pool of this module made `buffer`.
pub fn made(buffer: &gst::BufferRef) -> bool {
    // SAFETY: the buffer is borrowed; its pool is NULL or an object that it keeps alive.
    let pool: Option<gst::BufferPool> =
        unsafe { glib::translate::from_glib_none((*buffer.as_ptr()).pool) };
    pool.is_some_and(|pool| pool.is::<Pool>())
}
