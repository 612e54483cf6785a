//! Buffer pools as other elements write them.

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

/// What the pool does with a configuration, and with a buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    least: u32,
    accepts: bool,
    short: bool,
}

#[derive(Default)]
pub struct Imp(std::sync::Mutex<Manner>);

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
        let Manner { least, accepts, .. } = *self.0.lock().unwrap();
        if !accepts {
            return false;
        }
        let (caps, size, min, max) = config.params().unwrap();
        config.set_params(caps.as_ref(), size, min.max(least), max);
        self.parent_set_config(config) && min >= least
    }

    fn alloc_buffer(
        &self,
        params: Option<&gst::BufferPoolAcquireParams>,
    ) -> Result<gst::Buffer, gst::FlowError> {
        let mut buffer = self.parent_alloc_buffer(params)?;
        if self.0.lock().unwrap().short {
            let short = buffer.make_mut();
            // Rows of a megabyte, which the memory does not have.
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

fn with(manner: Manner) -> Pool {
    let pool: Pool = glib::Object::new();
    *pool.imp().0.lock().unwrap() = manner;
    pool
}

/// One with at least `least` buffers, which adjusts configurations with fewer.
pub fn adjusting(least: u32) -> Pool {
    with(Manner { least, accepts: true, short: false })
}

/// One that no configuration suits.
pub fn refusing() -> Pool {
    with(Manner { least: 0, accepts: false, short: false })
}

/// One whose buffers are smaller than the strides in their metadata need.
pub fn short() -> Pool {
    with(Manner { least: 0, accepts: true, short: true })
}

/// Whether a pool of this module made `buffer`.
pub fn made(buffer: &gst::BufferRef) -> bool {
    // SAFETY: the buffer is borrowed; its pool is NULL or an object that it keeps alive.
    let pool: Option<gst::BufferPool> =
        unsafe { glib::translate::from_glib_none((*buffer.as_ptr()).pool) };
    pool.is_some_and(|pool| pool.is::<Pool>())
}
