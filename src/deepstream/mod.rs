// SPDX-License-Identifier: MIT OR Apache-2.0
//! NVIDIA DeepStream's metadata.
//!
//! In: a `GstBuffer`. Out: [`BatchMeta`], by which the frames of a batch, their tensors and their objects
//! are read and written. `input::deepstream` and `output::deepstream` use it; no other module knows
//! DeepStream.
//!
//! DeepStream is neither linked nor needed to build: [`library`] opens its libraries when the first buffer
//! with its metadata comes, and [`layout`] says where the fields of its structures are. A list is read by
//! its `GList` links, and changed by DeepStream's functions only.
//!
//! # Memory
//! The metadata belongs to the buffer. It stays where it is as long as the buffer exists and DeepStream's
//! functions remove nothing from it. Other threads may change the metadata of a buffer only while they
//! hold the batch's lock ([`BatchMeta::lock`]).

pub mod layout;
pub mod library;

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use gst::glib;

use layout::{
    BATCH_META, DataType, LABEL_SIZE, LAYER_SIZE, Layout, LayoutError, MAX_DIMS, META_TAG,
    TENSOR_OUTPUT_META, UNTRACKED_OBJECT_ID, Version, base, batch, bbox, color, dims, font, frame,
    layer, network, object, rect, tensor, text, user,
};
use library::{Library, LibraryError};

/// The greatest number of frames in a batch, and of metadata in a list, that is read: more than any
/// pipeline has. A list that does not end is an error, not an endless loop.
const MAX_LIST: usize = 65_536;

/// Why DeepStream's metadata cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DeepStreamError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(
        "DeepStream's batch says that it has {said} frames, but its list has {listed}; the metadata is \
         damaged, or of another version than {version}: correct deepstream-version, or the element upstream"
    )]
    FrameCount { said: usize, listed: usize, version: Version },
    #[error(
        "DeepStream's metadata has a null pointer where {what} is expected; it is damaged, or of another \
         version than {version}: correct deepstream-version, or the element upstream"
    )]
    Null { what: &'static str, version: Version },
    #[error(
        "DeepStream's list of {what} has more than {MAX_LIST} entries; it is damaged, or of another \
         version than {version}: correct deepstream-version, or the element upstream"
    )]
    Endless { what: &'static str, version: Version },
    #[error(
        "DeepStream has no room for another object: nvds_acquire_obj_meta_from_pool returned null"
    )]
    NoObject,
}

/// Whether `buffer` has metadata of DeepStream. Opens no library.
pub fn is_on(buffer: &gst::BufferRef) -> bool {
    let tag = glib::Quark::from_static_str(glib::gstr!("nvdsmeta"));
    debug_assert_eq!(tag.as_str(), META_TAG);
    buffer.iter_meta::<gst::Meta>().any(|meta| has_tag(&meta, tag))
}

fn has_tag(meta: &gst::MetaRef<'_, gst::Meta>, tag: glib::Quark) -> bool {
    use glib::translate::{IntoGlib, from_glib};
    // SAFETY: the metadata's API type is registered for as long as the process runs.
    unsafe {
        from_glib(gst::ffi::gst_meta_api_type_has_tag(meta.api().into_glib(), tag.into_glib()))
    }
}

/// DeepStream's functions and the layout of its structures, for one version.
#[derive(Debug)]
pub struct DeepStream {
    library: Library,
    layout: &'static Layout,
    version: Version,
}

impl DeepStream {
    /// Opens the libraries. The layout is that of `forced`, or of the version that the libraries report.
    ///
    /// # Errors
    /// If a library or a function is missing, or the version's layout is not known.
    pub fn open(forced: Option<Version>) -> Result<Self, DeepStreamError> {
        let library = Library::open()?;
        let version = match forced {
            Some(version) => version,
            None => library.version()?,
        };
        Ok(Self { library, layout: Layout::of(version)?, version })
    }

    /// The version whose layout is used.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The batch of video frames of `buffer`; `None` if it has none.
    pub fn batch<'a>(&'a self, buffer: &'a gst::BufferRef) -> Option<BatchMeta<'a>> {
        // SAFETY: the function reads the buffer's list of metadata.
        let batch = unsafe { (self.library.gst_buffer_get_nvds_batch_meta)(buffer.as_mut_ptr()) };
        let batch = Record(NonNull::new(batch)?);
        // SAFETY: the batch has this field in every layout. A batch of audio has it, too.
        let batch_type: i32 = unsafe { batch.read(batch::BASE + base::TYPE) };
        let found = BatchMeta { deepstream: self, batch, buffer: PhantomData };
        (batch_type == BATCH_META).then_some(found)
    }
}

/// A structure of DeepStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record(NonNull<c_void>);

impl Record {
    fn as_ptr(self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// The address of the field at `offset`.
    ///
    /// # Safety
    /// The structure must exist and have a field there.
    unsafe fn at(self, offset: usize) -> *mut c_void {
        // SAFETY: the field is inside of the structure.
        unsafe { self.0.as_ptr().byte_add(offset) }
    }

    /// The value of the field at `offset`.
    ///
    /// # Safety
    /// As [`at`](Self::at), and the field must have the type `T`.
    unsafe fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: the caller guarantees the field and its type; DeepStream aligns fields.
        unsafe { self.at(offset).cast::<T>().read() }
    }

    /// Sets the field at `offset`.
    ///
    /// # Safety
    /// As [`read`](Self::read), and nothing else may access the structure.
    unsafe fn write<T: Copy>(self, offset: usize, value: T) {
        // SAFETY: as above.
        unsafe { self.at(offset).cast::<T>().write(value) }
    }

    /// Sets the four numbers of a color.
    ///
    /// # Safety
    /// As [`write`](Self::write), for a field of type `NvOSD_ColorParams`.
    unsafe fn write_color(self, offset: usize, rgba: [f64; 4]) {
        let channels = [color::RED, color::GREEN, color::BLUE, color::ALPHA];
        for (channel, value) in channels.into_iter().zip(rgba) {
            // SAFETY: the channels are fields of the color.
            unsafe { self.write(offset + channel, value) };
        }
    }
}

/// The metadata of a batch, `NvDsBatchMeta`.
#[derive(Clone, Copy, Debug)]
pub struct BatchMeta<'a> {
    deepstream: &'a DeepStream,
    batch: Record,
    buffer: PhantomData<&'a gst::BufferRef>,
}

/// The batch's metadata while its lock is held: other threads do not change it.
#[derive(Debug)]
pub struct LockedBatch<'a>(BatchMeta<'a>);

impl<'a> BatchMeta<'a> {
    /// The version whose layout is used.
    pub fn version(&self) -> Version {
        self.deepstream.version()
    }

    /// Acquires the batch's lock, which a thread can acquire more than once.
    pub fn lock(self) -> LockedBatch<'a> {
        // SAFETY: the batch exists as long as the buffer.
        unsafe { (self.deepstream.library.nvds_acquire_meta_lock)(self.batch.as_ptr()) };
        LockedBatch(self)
    }
}

impl Drop for LockedBatch<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock.
        unsafe { (self.0.deepstream.library.nvds_release_meta_lock)(self.0.batch.as_ptr()) };
    }
}

impl LockedBatch<'_> {
    fn layout(&self) -> &'static Layout {
        self.0.deepstream.layout
    }

    fn version(&self) -> Version {
        self.0.deepstream.version
    }

    /// The frames, in the order of the batch's list.
    ///
    /// # Errors
    /// If the list's length is not the batch's number of frames, or an entry is null.
    pub fn frames(
        &self,
    ) -> Result<impl Iterator<Item = Result<FrameMeta<'_>, DeepStreamError>>, DeepStreamError> {
        // SAFETY: the batch has these fields in every layout.
        let (said, list) = unsafe {
            let said: u32 = self.0.batch.read(batch::NUM_FRAMES);
            (said as usize, self.list(self.0.batch, batch::FRAMES, "frames"))
        };
        let listed = list.clone().count();
        if said != listed {
            return Err(DeepStreamError::FrameCount { said, listed, version: self.version() });
        }
        Ok(list.map(|frame| frame.map(|frame| FrameMeta(frame, PhantomData))))
    }

    /// Whether tensors are attached to the batch, as nvinfer does for regions of interest
    /// (`input-tensor-meta`).
    pub fn has_batch_tensors(&self) -> bool {
        // SAFETY: the batch has this field in every layout.
        let mut metas = unsafe { self.list(self.0.batch, batch::USER_METAS, "user metadata") };
        metas.any(|meta| meta.is_ok_and(|meta| self.type_of(meta) == TENSOR_OUTPUT_META))
    }

    /// Whether `frame` has a region of interest that a model was run on.
    pub fn has_region(&self, frame: FrameMeta<'_>) -> bool {
        // SAFETY: the frame has this field in every layout.
        let mut metas = unsafe { self.list(frame.0, frame::USER_METAS, "user metadata") };
        self.layout().roi_meta.is_some_and(|roi_meta| {
            metas.any(|meta| meta.is_ok_and(|meta| self.type_of(meta) == roi_meta))
        })
    }

    /// Whether an object of `frame` has tensors, as nvinfer attaches them with `process-mode=2`.
    pub fn has_object_tensors(&self, frame: FrameMeta<'_>) -> bool {
        // SAFETY: the frame and its objects have these fields.
        let mut objects = unsafe { self.list(frame.0, frame::OBJECTS, "objects") };
        objects.any(|object| {
            object.is_ok_and(|object| {
                let offset = self.layout().object_user_metas;
                // SAFETY: the object has this field in this layout.
                let mut metas = unsafe { self.list(object, offset, "user metadata") };
                metas.any(|meta| meta.is_ok_and(|meta| self.type_of(meta) == TENSOR_OUTPUT_META))
            })
        })
    }

    /// The outputs of models for `frame`, in the order of its list.
    pub fn tensors<'l>(
        &'l self,
        frame: FrameMeta<'l>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        // SAFETY: the frame has this field in every layout.
        let metas = unsafe { self.list(frame.0, frame::USER_METAS, "user metadata") };
        let version = self.version();
        metas.filter_map(move |meta| {
            let meta = match meta {
                Ok(meta) => meta,
                Err(error) => return Some(Err(error)),
            };
            (self.type_of(meta) == TENSOR_OUTPUT_META).then(|| {
                // SAFETY: metadata of users has this field.
                let data = unsafe { meta.read::<*mut c_void>(user::DATA) };
                let data = NonNull::new(data)
                    .ok_or(DeepStreamError::Null { what: "an NvDsInferTensorMeta", version })?;
                Ok(TensorMeta { user: meta, tensor: Record(data), lifetime: PhantomData })
            })
        })
    }

    /// The size of `frame` in the muxer's coordinates; `None` if the muxer has not set it. A copy of a buffer, as
    /// behind a tee, does not have it.
    pub fn frame_size(&self, frame: FrameMeta<'_>) -> Option<[u32; 2]> {
        // SAFETY: the frame has these fields in every layout.
        let size = unsafe { [frame.0.read(frame::WIDTH), frame.0.read(frame::HEIGHT)] };
        (!size.contains(&0)).then_some(size)
    }

    /// Gives the frames the sizes that the frames of `original` have. This batch is a copy of it, and DeepStream
    /// does not copy them.
    ///
    /// # Errors
    /// If the list of frames of either is damaged.
    pub fn copy_frame_sizes(&self, original: &LockedBatch<'_>) -> Result<(), DeepStreamError> {
        for (frame, original_frame) in self.frames()?.zip(original.frames()?) {
            let (frame, original_frame) = (frame?, original_frame?);
            if let Some([width, height]) = original.frame_size(original_frame) {
                // SAFETY: the frame has these fields in every layout, and the lock is held.
                unsafe {
                    frame.0.write(frame::WIDTH, width);
                    frame.0.write(frame::HEIGHT, height);
                }
            }
        }
        Ok(())
    }

    /// The number of the element that ran the model of `tensor`.
    pub fn unique_id(&self, tensor: TensorMeta<'_>) -> u32 {
        // SAFETY: the structure has this field in every layout.
        unsafe { tensor.tensor.read(tensor::UNIQUE_ID) }
    }

    /// The number of the GPU that `tensor` is on.
    pub fn gpu(&self, tensor: TensorMeta<'_>) -> u32 {
        // SAFETY: the structure has this field in every layout.
        unsafe { tensor.tensor.read::<i32>(tensor::GPU_ID) }.max(0).unsigned_abs()
    }

    /// What `tensor` says of its model.
    pub fn model(&self, tensor: TensorMeta<'_>) -> Model {
        let Layout { maintain_aspect_ratio, symmetric_padding, .. } = *self.layout();
        // SAFETY: the offsets are those of fields that the structure has in this layout.
        unsafe {
            let flag =
                |offset: Option<usize>| offset.map(|offset| tensor.tensor.read::<i32>(offset) != 0);
            let sides = [network::WIDTH, network::HEIGHT];
            Model {
                size: sides.map(|side| tensor.tensor.read(tensor::NETWORK + side)),
                maintain_aspect_ratio: flag(maintain_aspect_ratio),
                symmetric_padding: flag(symmetric_padding),
            }
        }
    }

    /// The output layers of `tensor`.
    ///
    /// # Errors
    /// If there are layers and their array is null.
    pub fn layers<'l>(
        &'l self,
        tensor: TensorMeta<'l>,
    ) -> Result<impl ExactSizeIterator<Item = LayerMeta<'l>>, DeepStreamError> {
        let record = tensor.tensor;
        // SAFETY: the structure has these fields in every layout.
        let (count, layers, host, device) = unsafe {
            (
                record.read::<u32>(tensor::NUM_LAYERS) as usize,
                record.read::<*mut c_void>(tensor::LAYERS),
                record.read::<*const u64>(tensor::HOST),
                record.read::<*const u64>(tensor::DEVICE),
            )
        };
        let version = self.version();
        let first = match NonNull::new(layers) {
            Some(layers) => layers,
            None if count == 0 => NonNull::dangling(),
            None => {
                return Err(DeepStreamError::Null { what: "an array of layers", version });
            }
        };
        Ok((0..count).map(move |index| {
            // SAFETY: the arrays have `count` entries, the pointers to them may be null.
            unsafe {
                let address =
                    |array: *const u64| if array.is_null() { 0 } else { array.add(index).read() };
                LayerMeta {
                    layer: Record(first.byte_add(index * LAYER_SIZE)),
                    host: address(host),
                    device: address(device),
                    lifetime: PhantomData,
                }
            }
        }))
    }

    /// Removes `tensor` from `frame`. DeepStream calls its release function, by which its memory goes back to
    /// the element that attached it.
    pub fn remove_tensor(&self, frame: FrameMeta<'_>, tensor: TensorMeta<'_>) {
        let library = &self.0.deepstream.library;
        // SAFETY: the metadata is in the frame's list, and the lock is held.
        unsafe {
            (library.nvds_remove_user_meta_from_frame)(frame.0.as_ptr(), tensor.user.as_ptr());
        }
    }

    /// Says that a model was run on `frame`, so that trackers update their objects.
    pub fn set_infer_done(&self, frame: FrameMeta<'_>) {
        // SAFETY: the frame has this field in every layout, and the lock is held.
        unsafe { frame.0.write(frame::INFER_DONE, i32::from(true)) };
    }

    /// Adds an object to `frame`, with the border and the text that nvinfer gives to its objects.
    ///
    /// Fields that are not set here are zero. An object is added immediately after it is acquired: nvdsosd draws
    /// every object that was acquired.
    ///
    /// # Errors
    /// If DeepStream provides no object.
    pub fn add_object(
        &self,
        frame: FrameMeta<'_>,
        new: &NewObject<'_>,
    ) -> Result<(), DeepStreamError> {
        const RED: [f64; 4] = [1.0, 0.0, 0.0, 1.0];
        const BLACK: [f64; 4] = [0.0, 0.0, 0.0, 1.0];
        const WHITE: [f64; 4] = [1.0; 4];
        const FONT: &CStr = c"Serif";
        let library = &self.0.deepstream.library;
        let layout = self.layout();
        let [left, top, width, height] = new.rect;
        // SAFETY: the lock is held. The object is new and not in a list yet, and has these fields in this
        // layout. Its text is allocated by g_malloc, as DeepStream expects; the font's name is static.
        unsafe {
            let added = (library.nvds_acquire_obj_meta_from_pool)(self.0.batch.as_ptr());
            let added = Record(NonNull::new(added).ok_or(DeepStreamError::NoObject)?);
            added.write(object::COMPONENT_ID, new.component_id);
            added.write(object::CLASS, new.class);
            added.write(object::ID, UNTRACKED_OBJECT_ID);
            added.write(object::CONFIDENCE, new.confidence);
            let numbers = [left, top, width, height];
            let fields = [bbox::LEFT, bbox::TOP, bbox::WIDTH, bbox::HEIGHT];
            for (field, number) in fields.into_iter().zip(numbers) {
                added.write(object::DETECTOR_BOX + field, number);
            }
            let fields = [rect::LEFT, rect::TOP, rect::WIDTH, rect::HEIGHT];
            for (field, number) in fields.into_iter().zip(numbers) {
                added.write(object::RECT + field, number);
            }
            added.write(object::RECT + rect::BORDER_WIDTH, 3u32);
            added.write_color(object::RECT + rect::BORDER_COLOR, RED);
            added.write(object::RECT + rect::HAS_BACKGROUND, 0u32);
            if let Some(rotation_angle) = layout.rotation_angle {
                added.write(object::RECT + rotation_angle, 0.0f32);
            }

            let label = truncated(new.label, LABEL_SIZE - 1);
            let field = added.at(layout.object_label).cast::<u8>();
            field.copy_from_nonoverlapping(label.as_ptr(), label.len());
            field.add(label.len()).write(0);

            let at = layout.object_text;
            let text = glib::ffi::g_strndup(new.label.as_ptr().cast(), new.label.len());
            added.write(at + text::TEXT, text);
            added.write(at + text::X, left as u32);
            added.write(at + text::Y, (top - 10.0) as u32);
            added.write(at + text::FONT + font::NAME, FONT.as_ptr());
            added.write(at + text::FONT + font::SIZE, 11u32);
            added.write_color(at + text::FONT + font::COLOR, WHITE);
            added.write(at + text::HAS_BACKGROUND, 1i32);
            added.write_color(at + text::BACKGROUND, BLACK);
            (library.nvds_add_obj_meta_to_frame)(frame.0.as_ptr(), added.as_ptr(), null_mut());
        }
        Ok(())
    }

    /// Whether `frame` has an object of this component, with this class and this rectangle.
    pub fn has_object(&self, frame: FrameMeta<'_>, wanted: &NewObject<'_>) -> bool {
        // SAFETY: the frame and its objects have these fields in every layout.
        unsafe {
            self.list(frame.0, frame::OBJECTS, "objects").flatten().any(|found| {
                let fields = [rect::LEFT, rect::TOP, rect::WIDTH, rect::HEIGHT];
                found.read::<i32>(object::COMPONENT_ID) == wanted.component_id
                    && found.read::<i32>(object::CLASS) == wanted.class
                    && fields.map(|field| found.read::<f32>(object::RECT + field)) == wanted.rect
            })
        }
    }

    /// The type of metadata.
    fn type_of(&self, meta: Record) -> i32 {
        // SAFETY: all metadata of users begins with this field.
        unsafe { meta.read(user::BASE + base::TYPE) }
    }

    /// The structures of the `GList` in the field at `offset`. After an error there are no more.
    ///
    /// # Safety
    /// `record` must have a field there of type `GList *`. The list must not change while the lock is held.
    unsafe fn list(
        &self,
        record: Record,
        offset: usize,
        what: &'static str,
    ) -> impl Iterator<Item = Result<Record, DeepStreamError>> + Clone + use<> {
        let version = self.version();
        // SAFETY: the caller guarantees the field.
        let mut link: *const glib::ffi::GList = unsafe { record.read(offset) };
        let mut count = 0;
        std::iter::from_fn(move || {
            if link.is_null() {
                return None;
            }
            count += 1;
            if count > MAX_LIST {
                link = std::ptr::null();
                return Some(Err(DeepStreamError::Endless { what, version }));
            }
            // SAFETY: the link is not null, and the list does not change.
            let entry = unsafe { link.read() };
            link = entry.next;
            let data = NonNull::new(entry.data).map(Record);
            Some(data.ok_or(DeepStreamError::Null { what, version }))
        })
    }
}

/// The longest part of `text` of at most `most` bytes that ends between characters.
fn truncated(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The metadata of a frame, `NvDsFrameMeta`.
#[derive(Clone, Copy, Debug)]
pub struct FrameMeta<'l>(Record, PhantomData<&'l ()>);

/// The outputs of a model for a frame, `NvDsInferTensorMeta`, and the `NvDsUserMeta` that has them.
#[derive(Clone, Copy, Debug)]
pub struct TensorMeta<'l> {
    user: Record,
    tensor: Record,
    lifetime: PhantomData<&'l ()>,
}

/// What the tensors of a frame say of their model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Width and height of its input.
    pub size: [u32; 2],
    /// Whether the frame was scaled without distortion; `None` if the version does not say it.
    pub maintain_aspect_ratio: Option<bool>,
    /// Whether a scaled frame has borders on both sides; `None` if the version does not say it.
    pub symmetric_padding: Option<bool>,
}

/// An output layer, `NvDsInferLayerInfo`, and the addresses of its elements.
#[derive(Clone, Copy, Debug)]
pub struct LayerMeta<'a> {
    layer: Record,
    /// The host address, or 0.
    pub host: u64,
    /// The device address, or 0.
    pub device: u64,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> LayerMeta<'a> {
    /// The name; `None` if it is null.
    pub fn name(&self) -> Option<&'a CStr> {
        // SAFETY: the layer has this field in every layout. The string is not changed as long as the
        // buffer has the tensors.
        unsafe {
            let name = self.layer.read::<*const c_char>(layer::NAME);
            (!name.is_null()).then(|| CStr::from_ptr(name))
        }
    }

    /// The type of the elements.
    pub fn data_type(&self) -> DataType {
        // SAFETY: the layer has this field in every layout.
        DataType::of(unsafe { self.layer.read(layer::TYPE) })
    }

    /// The dimensions without the batch, and the number of elements.
    ///
    /// # Errors
    /// The number of dimensions, if it is more than [`MAX_DIMS`].
    pub fn dims(&self) -> Result<(arrayvec::ArrayVec<usize, MAX_DIMS>, usize), usize> {
        // SAFETY: the layer has these fields in every layout.
        unsafe {
            let rank = self.layer.read::<u32>(layer::DIMS + dims::RANK) as usize;
            if rank > MAX_DIMS {
                return Err(rank);
            }
            let all: [u32; MAX_DIMS] = self.layer.read(layer::DIMS + dims::DIMS);
            let elements = self.layer.read::<u32>(layer::DIMS + dims::ELEMENTS) as usize;
            Ok((all[..rank].iter().map(|&dim| dim as usize).collect(), elements))
        }
    }
}

/// An object to add to a frame.
#[derive(Clone, Copy, Debug)]
pub struct NewObject<'a> {
    /// The number of the element that ran the model.
    pub component_id: i32,
    /// The class.
    pub class: i32,
    /// The score.
    pub confidence: f32,
    /// Left, top, width and height in the muxer's coordinates.
    pub rect: [f32; 4],
    /// The name of the class.
    pub label: &'a str,
}

#[cfg(test)]
mod tests {
    use super::truncated;

    #[test]
    fn labels_are_truncated_between_characters() {
        assert_eq!(truncated("person", 127), "person");
        assert_eq!(truncated("person", 3), "per");
        assert_eq!(truncated("aä", 2), "a");
        assert_eq!(truncated("aä", 3), "aä");
    }
}
