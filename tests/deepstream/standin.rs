// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the stand-in for DeepStream's libraries (`standin/standin.h`).
//!
//! In: the folder that [`FOLDER`] names. Out: functions that attach batches to buffers and tensors
//! to frames, and that read the batch afterwards.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, LazyLock};

use libloading::Library;

use crate::object::{Object, RawObject};

/// Variable with the folder of the libraries.
pub const FOLDER: &str = "NMSFILTER_TEST_STANDIN";
/// Variable with the prefix that library names have after `lib`. It is unset if there is no prefix.
pub const PREFIX: &str = "NMSFILTER_TEST_STANDIN_PREFIX";

/// Library with producers that call NVIDIA's own libraries.
const PRODUCERS: &str = "libstandin.so";

/// Returns true if the libraries are NVIDIA's own. In this case only batches and tensors are
/// counted.
pub fn is_nvidias() -> bool {
    std::env::var_os(FOLDER).is_some_and(|folder| Path::new(&folder).join(PRODUCERS).exists())
}

type Raw = *mut c_void;

/// Declares the functions and loads them.
macro_rules! functions {
    ($($library:ident { $(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+ })+) => {
        struct Functions {
            $($($name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)+)+
            _libraries: [Library; 2],
        }

        impl Functions {
            fn load($($library: Library),+) -> Self {
                // SAFETY: the types agree with standin.h.
                unsafe {
                    $($(
                        let $name = *$library
                            .get(concat!("standin_", stringify!($name)).as_bytes())
                            .expect("standin.h declares it");
                    )+)+
                    Self { $($($name,)+)+ _libraries: [$($library),+] }
                }
            }
        }
    };
}

functions! {
    meta {
        fn sizes(which: c_uint) -> usize;
        fn add_frame(batch: Raw, frame: *const Frame) -> Raw;
        fn frame(batch: Raw, index: c_uint) -> Raw;
        fn object(frame: Raw, index: c_uint) -> Raw;
        fn add_object(frame: Raw, component: c_int, class: c_int, corners: *const f32) -> Raw;
        fn set_frame_count(batch: Raw, count: c_uint);
        fn set_pool(batch: Raw, which: c_uint, meta_type: c_int, element_size: c_uint);
        fn add_null_frame(batch: Raw);
        fn add_null_user_meta(frame: Raw);
        fn add_other_user_meta(frame: Raw);
        fn pool_new(count: c_uint, bytes: usize) -> Raw;
        fn pool_acquire(pool: Raw, milliseconds: c_uint) -> Raw;
        fn pool_in_use(pool: Raw) -> c_uint;
        fn pool_free(pool: Raw);
        fn output_memory(output: Raw) -> Raw;
        fn output_index(output: Raw) -> c_uint;
        fn output_unref(output: Raw);
        fn attach_to_frame(frame: Raw, tensors: *const RawTensors, output: Raw);
        fn attach_to_object(object: Raw, tensors: *const RawTensors, output: Raw);
        fn attach_to_roi(frame: Raw, roi: *const RawRegion, tensors: *const RawTensors, output: Raw);
        fn read_frame(frame: Raw, state: *mut FrameState);
        fn read_objects(frame: Raw, objects: *mut RawObject, most: c_uint) -> c_uint;
        fn counts(counts: *mut Counts);
    }
    gst {
        fn attach_batch(buffer: *mut gst::ffi::GstBuffer, frames: c_uint) -> Raw;
        fn attach_null_batch(buffer: *mut gst::ffi::GstBuffer);
        fn set_surfaces(buffer: *mut gst::ffi::GstBuffer, surfaces: *const RawSurfaces);
    }
}

/// A function of DeepStream that the tests call directly.
type GetBatch = unsafe extern "C" fn(*mut gst::ffi::GstBuffer) -> Raw;

static LOADED: LazyLock<(Functions, Option<GetBatch>)> = LazyLock::new(|| {
    let folder = std::env::var_os(FOLDER).expect("this process was started with the libraries");
    let prefix = std::env::var(PREFIX).unwrap_or_default();
    let open = |name: &str| {
        let path = Path::new(&folder).join(format!("{prefix}{name}"));
        // SAFETY: the libraries have no initializers.
        unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let names =
        if is_nvidias() { [PRODUCERS; 2] } else { ["libnvds_meta.so", "libnvdsgst_meta.so"] };
    let [meta, gst] = names.map(open);
    // SAFETY: the type agrees with gstnvdsmeta.h.
    let get = unsafe { gst.get::<GetBatch>(b"gst_buffer_get_nvds_batch_meta") };
    let get = get.ok().map(|get| *get);
    let functions = Functions::load(meta, gst);
    let sizes = [
        size_of::<Frame>(),
        size_of::<RawLayer>(),
        size_of::<RawTensors>(),
        size_of::<FrameState>(),
        size_of::<RawObject>(),
        size_of::<Counts>(),
        size_of::<RawSurfaces>(),
        size_of::<RawRegion>(),
    ];
    for (which, size) in (0..).zip(sizes) {
        // SAFETY: the function takes only a number.
        assert_eq!(unsafe { (functions.sizes)(which) }, size, "structure {which} of standin.h");
    }
    (functions, get)
});

fn functions() -> &'static Functions {
    &LOADED.0
}

/// A frame of a batch, with the fields that nvstreammux sets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Frame {
    pub batch_id: u32,
    pub source_id: u32,
    pub pad_index: u32,
    pub frame_num: i32,
    pub pts: u64,
    pub unix_time: u64,
    pub pipeline: [u32; 2],
    pub source: [u32; 2],
}

/// The content of a frame's metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct FrameState {
    pub batch_id: u32,
    pub source_id: u32,
    pub num_obj_meta: u32,
    pub listed_objects: u32,
    pub infer_done: i32,
    pub tensors: u32,
    pub other_user_metas: u32,
}

/// Counts of the whole process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Counts {
    pub batches: i64,
    pub frames: i64,
    pub objects: i64,
    pub user_metas: i64,
    pub tensors: i64,
    /// Texts that were released together with their objects.
    pub texts: i64,
    /// Locks acquired.
    pub locks: i64,
    /// Changes that were made without holding the lock.
    pub unlocked: i64,
    /// Locks held.
    pub held: i64,
    /// Objects that a pool allocated because it could not recycle one.
    pub new_objects: i64,
}

impl Counts {
    pub fn now() -> Self {
        let mut counts = Self::default();
        // SAFETY: `counts` has the structure's type.
        unsafe { (functions().counts)(&mut counts) };
        counts
    }

    /// Asserts that nothing of a batch is left, that no lock is held, and that all changes were
    /// made under the lock.
    pub fn assert_nothing_left(self) {
        let expected = Self {
            texts: self.texts,
            locks: self.locks,
            new_objects: self.new_objects,
            ..Self::default()
        };
        assert_eq!(self, expected);
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RawLayer {
    name: *const c_char,
    data_type: i32,
    rank: u32,
    dims: [u32; 8],
    elements: u32,
    host: Raw,
    device: Raw,
}

#[repr(C)]
struct RawTensors {
    unique_id: u32,
    gpu: i32,
    size: [u32; 2],
    maintain_aspect_ratio: i32,
    symmetric_padding: i32,
    flags: u32,
    count: u32,
    layers: *const RawLayer,
    claimed_layers: u32,
}

#[repr(C)]
struct RawRegion {
    rect: [f32; 4],
    scaling: [[f64; 2]; 2],
    object: Raw,
}

#[repr(C)]
struct RawSurfaces {
    batch_size: u32,
    num_filled: u32,
    count: u32,
    no_list: i32,
    sizes: *const [u32; 2],
    bytes: usize,
}

/// The `NvBufSurface` that buffers in NVMM memory contain.
#[derive(Clone, Debug, Default)]
pub struct Surfaces {
    /// Width and height of each surface.
    pub sizes: Vec<[u32; 2]>,
    /// Batch size and number of surfaces that the structure claims to have; `None` for the true
    /// numbers.
    pub claimed: Option<[u32; 2]>,
    /// If true, the address of the surfaces is null.
    pub null: bool,
    /// Size of the memory in bytes; 0 for the size of the structure.
    pub bytes: usize,
}

impl Surfaces {
    /// Replaces the memory of `buffer` by these surfaces.
    pub fn replace_memory(&self, buffer: &mut gst::BufferRef) {
        let count = self.sizes.len() as u32;
        let [batch_size, num_filled] = self.claimed.unwrap_or([count; 2]);
        let surfaces = RawSurfaces {
            batch_size,
            num_filled,
            count,
            no_list: self.null.into(),
            sizes: self.sizes.as_ptr(),
            bytes: self.bytes,
        };
        // SAFETY: the buffer is writable; the function copies the sizes.
        unsafe { (functions().set_surfaces)(buffer.as_mut_ptr(), &surfaces) };
    }
}

/// An output layer of a model, and the addresses of its elements for one frame.
#[derive(Clone, Debug)]
pub struct Layer {
    pub name: Option<CString>,
    /// A value of `NvDsInferDataType`.
    pub data_type: i32,
    /// Dimensions, at most 8.
    pub dims: Vec<u32>,
    /// Number of dimensions and of elements that the metadata claims; `None` for the true numbers.
    pub counts: Option<[u32; 2]>,
    pub host: u64,
    pub device: u64,
}

/// Flags for the pointers of an `NvDsInferTensorMeta`, or of its user metadata, that are null.
pub mod null {
    pub const DATA: u32 = 1;
    pub const LAYERS: u32 = 2;
    pub const HOST: u32 = 4;
    pub const DEVICE: u32 = 8;
}

/// The outputs of a model for one frame.
#[derive(Clone, Debug, Default)]
pub struct Tensors {
    pub unique_id: u32,
    pub gpu: i32,
    /// Width and height of the model's input.
    pub size: [u32; 2],
    pub maintain_aspect_ratio: bool,
    pub symmetric_padding: bool,
    /// Flags of the module [`null`].
    pub null: u32,
    pub layers: Vec<Layer>,
    /// Number of layers that the metadata claims; 0 for the true number.
    pub claimed_layers: u32,
}

impl Tensors {
    fn raw<T>(&self, attach: impl FnOnce(*const RawTensors) -> T) -> T {
        let layers: Vec<RawLayer> = self.layers.iter().map(raw_layer).collect();
        attach(&RawTensors {
            unique_id: self.unique_id,
            gpu: self.gpu,
            size: self.size,
            maintain_aspect_ratio: self.maintain_aspect_ratio.into(),
            symmetric_padding: self.symmetric_padding.into(),
            flags: self.null,
            count: layers.len() as u32,
            layers: layers.as_ptr(),
            claimed_layers: self.claimed_layers,
        })
    }
}

fn raw_layer(layer: &Layer) -> RawLayer {
    let mut dims = [0; 8];
    dims[..layer.dims.len()].copy_from_slice(&layer.dims);
    let truth = || [layer.dims.len() as u32, layer.dims.iter().product()];
    let [rank, elements] = layer.counts.unwrap_or_else(truth);
    RawLayer {
        name: layer.name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
        data_type: layer.data_type,
        rank,
        dims,
        elements,
        host: layer.host as Raw,
        device: layer.device as Raw,
    }
}

/// The batch that is attached to a buffer.
#[derive(Clone, Copy)]
pub struct Batch<'a>(NonNull<c_void>, PhantomData<&'a gst::BufferRef>);

impl<'a> Batch<'a> {
    /// Adds an empty batch to `buffer`.
    pub fn attach(buffer: &'a mut gst::BufferRef, max_frames: u32) -> Self {
        // SAFETY: the buffer is writable.
        let batch = unsafe { (functions().attach_batch)(buffer.as_mut_ptr(), max_frames) };
        Self(NonNull::new(batch).unwrap(), PhantomData)
    }

    /// Adds DeepStream's metadata to `buffer`, without a batch.
    pub fn attach_null(buffer: &mut gst::BufferRef) {
        // SAFETY: the buffer is writable.
        unsafe { (functions().attach_null_batch)(buffer.as_mut_ptr()) };
    }

    /// Returns the batch of `buffer`, or `None` if it has none or the library lacks the function.
    pub fn find(buffer: &'a gst::BufferRef) -> Option<Self> {
        // SAFETY: the function reads the buffer.
        let batch = unsafe { LOADED.1?(buffer.as_mut_ptr()) };
        Some(Self(NonNull::new(batch)?, PhantomData))
    }

    fn raw(self) -> Raw {
        self.0.as_ptr()
    }

    pub fn add_frame(self, frame: &Frame) -> FrameMeta<'a> {
        // SAFETY: the batch lives as long as the buffer.
        FrameMeta(unsafe { (functions().add_frame)(self.raw(), frame) }, PhantomData)
    }

    /// Adds an entry without data to the list of frames.
    pub fn add_null_frame(self) {
        // SAFETY: the batch lives as long as the buffer.
        unsafe { (functions().add_null_frame)(self.raw()) };
    }

    /// Sets type and size of the structures in one of the batch's pools: 0 for objects, 1 for
    /// frames, 2 for user metadata. If the size is 0, the address of the pool becomes null.
    pub fn set_pool(self, which: u32, meta_type: i32, element_size: u32) {
        // SAFETY: the batch lives as long as the buffer.
        unsafe { (functions().set_pool)(self.raw(), which, meta_type, element_size) };
    }

    /// Sets the number of frames that the metadata claims.
    pub fn set_frame_count(self, count: u32) {
        // SAFETY: the batch lives as long as the buffer.
        unsafe { (functions().set_frame_count)(self.raw(), count) };
    }

    /// Returns the frames in the order of the list.
    pub fn frames(self) -> impl Iterator<Item = FrameMeta<'a>> {
        // SAFETY: the batch lives as long as the buffer.
        let frame = move |index| unsafe { (functions().frame)(self.raw(), index) };
        (0..)
            .map(frame)
            .take_while(|frame| !frame.is_null())
            .map(|frame| FrameMeta(frame, PhantomData))
    }
}

/// A frame of a batch.
#[derive(Clone, Copy)]
pub struct FrameMeta<'a>(Raw, PhantomData<&'a gst::BufferRef>);

impl<'a> FrameMeta<'a> {
    /// Attaches tensors that hold a reference to `output`.
    ///
    /// As long as the buffer has the tensors, the elements of the layers must stay at their
    /// addresses.
    pub fn attach(self, tensors: &Tensors, output: Option<&Output>) {
        // SAFETY: the frame lives as long as the buffer; the function copies the structures.
        tensors
            .raw(|tensors| unsafe { (functions().attach_to_frame)(self.0, tensors, raw(output)) });
    }

    /// Attaches tensors to a new region of interest (left, top, width, height), which may be an object. `scaling` is the
    /// ratio and the offset, for x and y.
    pub fn attach_to_roi(
        self,
        rect: [f32; 4],
        scaling: [[f64; 2]; 2],
        object: Option<ObjectMeta<'_>>,
        tensors: &Tensors,
    ) {
        let object = object.map_or(null_mut(), ObjectMeta::as_ptr);
        let region = RawRegion { rect, scaling, object };
        // SAFETY: the frame lives as long as the buffer; the function copies the structures.
        tensors.raw(|tensors| unsafe {
            (functions().attach_to_roi)(self.0, &region, tensors, null_mut());
        });
    }

    /// Adds an object (left, top, width, height) of another component, as a primary detector would.
    pub fn add_object(self, component: i32, class: i32, rect: [f32; 4]) -> ObjectMeta<'a> {
        // SAFETY: the frame lives as long as the buffer.
        let object = unsafe { (functions().add_object)(self.0, component, class, rect.as_ptr()) };
        ObjectMeta(object, PhantomData)
    }

    /// Adds an entry without data to the list of user metadata.
    pub fn add_null_user_meta(self) {
        // SAFETY: the frame lives as long as the buffer.
        unsafe { (functions().add_null_user_meta)(self.0) };
    }

    /// Adds user metadata of another type.
    pub fn add_other_user_meta(self) {
        // SAFETY: the frame lives as long as the buffer.
        unsafe { (functions().add_other_user_meta)(self.0) };
    }

    pub fn state(self) -> FrameState {
        let mut state = FrameState::default();
        // SAFETY: the frame lives as long as the buffer, and `state` has the structure's type.
        unsafe { (functions().read_frame)(self.0, &mut state) };
        state
    }

    /// Returns the objects in the order in which they were added. The list has the newest first.
    pub fn objects(self) -> Vec<Object> {
        let most = self.state().listed_objects;
        let mut raw = Vec::<RawObject>::with_capacity(most as usize);
        // SAFETY: the frame lives as long as the buffer. There is room for `most` objects, and the
        // function returns how many it wrote.
        unsafe {
            let count = (functions().read_objects)(self.0, raw.as_mut_ptr(), most);
            raw.set_len(count as usize);
        }
        Object::all(&raw)
    }

    /// Returns the objects in the order in which they were added.
    pub fn object_metas(self) -> Vec<ObjectMeta<'a>> {
        let most = self.state().listed_objects;
        // SAFETY: the frame lives as long as the buffer, and has this many objects.
        let object = |index| unsafe { (functions().object)(self.0, index) };
        (0..most).rev().map(|index| ObjectMeta(object(index), PhantomData)).collect()
    }

    /// Returns the objects that have tensors.
    pub fn objects_with_tensors(self) -> impl Iterator<Item = ObjectMeta<'a>> {
        let with = |(object, meta): (Object, _)| (object.tensors > 0).then_some(meta);
        self.objects().into_iter().zip(self.object_metas()).filter_map(with)
    }

    /// Returns the `NvDsFrameMeta *`.
    pub fn as_ptr(self) -> *mut c_void {
        self.0
    }
}

/// An object of a frame.
#[derive(Clone, Copy)]
pub struct ObjectMeta<'a>(Raw, PhantomData<&'a gst::BufferRef>);

impl ObjectMeta<'_> {
    /// Returns the address of the `NvDsObjectMeta`.
    pub fn as_ptr(self) -> *mut c_void {
        self.0
    }

    /// Attaches tensors, as nvinfer does with `process-mode=2`.
    pub fn attach(self, tensors: &Tensors, output: Option<&Output>) {
        // SAFETY: the object lives as long as the buffer; the function copies the structures.
        tensors
            .raw(|tensors| unsafe { (functions().attach_to_object)(self.0, tensors, raw(output)) });
    }
}

/// A pool of batches of outputs, like nvinfer's.
pub struct Pool(Raw);

// SAFETY: a lock protects the pool.
unsafe impl Send for Pool {}
// SAFETY: a lock protects the pool.
unsafe impl Sync for Pool {}

impl Pool {
    /// Makes a pool of `count` batches of outputs, each with `bytes` of host memory.
    pub fn new(count: u32, bytes: usize) -> Arc<Self> {
        // SAFETY: the function takes only numbers.
        Arc::new(Self(unsafe { (functions().pool_new)(count, bytes) }))
    }

    /// Waits up to 10 seconds for a batch of outputs that is not in use.
    pub fn acquire(&self) -> Output {
        self.acquire_within(10_000).expect("a batch of outputs comes back to the pool")
    }

    /// Waits up to this many milliseconds for a batch of outputs that is not in use.
    pub fn acquire_within(&self, milliseconds: u32) -> Option<Output> {
        // SAFETY: the pool exists.
        let output = unsafe { (functions().pool_acquire)(self.0, milliseconds) };
        NonNull::new(output).map(Output)
    }

    pub fn in_use(&self) -> u32 {
        // SAFETY: the pool exists.
        unsafe { (functions().pool_in_use)(self.0) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // When a test fails, outputs may still be in use; the pool is then leaked.
        if self.in_use() == 0 {
            // SAFETY: nothing uses the pool.
            unsafe { (functions().pool_free)(self.0) };
        }
    }
}

/// A reference to a batch of outputs. The producer owns it.
pub struct Output(NonNull<c_void>);

// SAFETY: references are counted under the pool's lock.
unsafe impl Send for Output {}

impl Output {
    /// Returns the host memory.
    pub fn memory(&self) -> *mut u8 {
        // SAFETY: the output exists.
        unsafe { (functions().output_memory)(self.0.as_ptr()) }.cast()
    }

    /// Returns the index of the batch of outputs in its pool.
    pub fn index(&self) -> usize {
        // SAFETY: the output exists.
        unsafe { (functions().output_index)(self.0.as_ptr()) as usize }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: `self` owns this reference.
        unsafe { (functions().output_unref)(self.0.as_ptr()) };
    }
}

fn raw(output: Option<&Output>) -> Raw {
    output.map_or(null_mut(), |output| output.0.as_ptr())
}
