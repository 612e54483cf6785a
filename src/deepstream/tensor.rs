// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of models that are attached to frames and to objects.
//!
//! In: a frame or an object of a locked batch. Out: its tensors, their model description, and the name, type, dimensions and
//! addresses of each output layer.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use arrayvec::ArrayVec;

use super::DeepStreamError;
use super::batch::{FrameMeta, LockedBatch};
use super::found_object::ObjectMeta;
use super::layout::{
    self, LAYER_SIZE, MAX_DIMS, StructureLayout, TENSOR_OUTPUT_META, dims, frame, layer, network,
    tensor, user,
};
use super::library::Remove;
use super::record::Record;
use super::region::RegionMeta;
use nmsfilter_core::tensor::ElementType;

/// The maximum number of output layers that are read; no model has more.
const MAX_LAYERS: usize = 1024;

impl LockedBatch<'_> {
    /// Returns the outputs of models for `frame`, in the order of the frame's list.
    pub fn tensors<'l>(
        &'l self,
        frame: FrameMeta<'l>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        // SAFETY: the frame has this field in every layout.
        unsafe { self.tensors_in(frame.0, frame::USER_METAS) }
    }

    /// Returns the outputs of models for `object`, in the order of the object's list. nvinfer attaches them with
    /// `process-mode=2`.
    pub fn object_tensors<'l>(
        &'l self,
        object: ObjectMeta<'l>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        // SAFETY: the object has this field in this layout.
        unsafe { self.tensors_in(object.0, self.layout().object_user_metas) }
    }

    /// Returns the outputs of models for `region`, in the order of the region's list. nvinfer attaches them with
    /// `input-tensor-meta=1`.
    pub fn region_tensors<'l>(
        &'l self,
        region: RegionMeta<'l>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        // SAFETY: the region has this field in its layout.
        unsafe { self.tensors_in(region.record, self.region_user_metas(region)) }
    }

    /// Returns the tensors in the list of user metadata in the field of `owner` at `offset`.
    ///
    /// # Safety
    /// See [`list`](Self::list).
    unsafe fn tensors_in<'l>(
        &'l self,
        owner: Record,
        offset: usize,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        // SAFETY: the caller guarantees the field.
        let metas = unsafe { self.list(owner, offset, "user metadata") };
        let version = self.version();
        metas.filter_map(move |meta| {
            let meta = match meta {
                Ok(meta) => meta,
                Err(error) => return Some(Err(error)),
            };
            (self.type_of(meta) == TENSOR_OUTPUT_META).then(|| {
                // SAFETY: user metadata has this field.
                let data = unsafe { meta.read::<*mut c_void>(user::DATA) };
                let data = NonNull::new(data)
                    .ok_or(DeepStreamError::Null { what: "an NvDsInferTensorMeta", version })?;
                Ok(TensorMeta { user: meta, tensor: Record(data), lifetime: PhantomData })
            })
        })
    }

    /// Removes the tensors of the element with the id `unique_id` from `frame`. DeepStream then calls their release
    /// functions, which return the memory to this element.
    pub fn remove_tensors(&self, frame: FrameMeta<'_>, unique_id: u32) {
        let remove = self.0.library.nvds_remove_user_meta_from_frame;
        // SAFETY: the frame has this field in every layout, and the function removes metadata of frames.
        unsafe { self.remove_tensors_in(frame.0, frame::USER_METAS, remove, unique_id) };
    }

    /// Removes the tensors of the element with the id `unique_id` from `object`, as from a frame.
    pub fn remove_object_tensors(&self, object: ObjectMeta<'_>, unique_id: u32) {
        let remove = self.0.library.nvds_remove_user_meta_from_object;
        let offset = self.layout().object_user_metas;
        // SAFETY: the object has this field in this layout, and the function removes metadata of objects.
        unsafe { self.remove_tensors_in(object.0, offset, remove, unique_id) };
    }

    /// # Safety
    /// See [`list`](Self::list). `remove` must remove metadata from this list.
    unsafe fn remove_tensors_in(
        &self,
        owner: Record,
        offset: usize,
        remove: Remove,
        unique_id: u32,
    ) {
        // SAFETY: the caller guarantees the field.
        let tensors = || unsafe { self.tensors_in(owner, offset) };
        // An element may have attached several tensors. The list is read again after each removal.
        for _ in 0..tensors().count() {
            let is_wanted = |&tensor: &TensorMeta<'_>| self.unique_id(tensor) == unique_id;
            let Some(tensor) = tensors().flatten().find(is_wanted) else { return };
            // SAFETY: the metadata is in the list, and the lock is held.
            unsafe { remove(owner.as_ptr(), tensor.user.as_ptr()) };
        }
    }

    /// Returns the id of the element that ran the model of `tensor`.
    pub fn unique_id(&self, tensor: TensorMeta<'_>) -> u32 {
        // SAFETY: the structure has this field in every layout.
        unsafe { tensor.tensor.read(tensor::UNIQUE_ID) }
    }

    /// Returns the index of the GPU whose memory contains `tensor`.
    pub fn gpu(&self, tensor: TensorMeta<'_>) -> u32 {
        // SAFETY: the structure has this field in every layout.
        unsafe { tensor.tensor.read::<i32>(tensor::GPU_ID) }.max(0).unsigned_abs()
    }

    /// Returns the model description of `tensor`.
    pub fn model(&self, tensor: TensorMeta<'_>) -> NetworkInfo {
        let StructureLayout { maintain_aspect_ratio, symmetric_padding, .. } = *self.layout();
        // SAFETY: the structure has fields at these offsets in this layout.
        unsafe {
            let sides = [network::WIDTH, network::HEIGHT];
            let flag = |offset: Option<usize>| match tensor.tensor.read::<i32>(offset?) {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            };
            NetworkInfo {
                size: sides.map(|side| tensor.tensor.read(tensor::NETWORK + side)),
                maintain_aspect_ratio: flag(maintain_aspect_ratio),
                symmetric_padding: flag(symmetric_padding),
            }
        }
    }

    /// Copies the model descriptions from the tensors of `original_frame` and of its objects to the tensors of `frame`,
    /// which is a copy of it. All tensors of one element have one model.
    pub(super) fn copy_models(
        &self,
        frame: FrameMeta<'_>,
        original: &LockedBatch<'_>,
        original_frame: FrameMeta<'_>,
    ) -> Result<(), DeepStreamError> {
        let StructureLayout { maintain_aspect_ratio, symmetric_padding, .. } = *self.layout();
        let sides = [network::WIDTH, network::HEIGHT].map(|side| tensor::NETWORK + side);
        let fields = sides.into_iter().chain(maintain_aspect_ratio).chain(symmetric_padding);
        for copy in self.tensors(frame).chain(self.tensors_of_objects(frame)) {
            let copy = copy?;
            let of_objects = original.tensors_of_objects(original_frame);
            let mut originals = original.tensors(original_frame).chain(of_objects).flatten();
            let is_same = |&tensor: &_| original.unique_id(tensor) == self.unique_id(copy);
            let Some(same) = originals.find(is_same) else { continue };
            for field in fields.clone() {
                // SAFETY: both structures have these four-byte fields in this layout, and both locks are held.
                unsafe { copy.tensor.write(field, same.tensor.read::<u32>(field)) };
            }
        }
        Ok(())
    }

    /// Returns the outputs of models for the objects of `frame`.
    fn tensors_of_objects<'l>(
        &'l self,
        frame: FrameMeta<'l>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        self.object_list(frame).flatten().flat_map(|object| self.object_tensors(object))
    }

    /// Returns the output layers of `tensor`.
    ///
    /// # Errors
    /// If there are more layers than any model has, or if there are layers, but their array is null.
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
        if count > MAX_LAYERS {
            return Err(DeepStreamError::Layers { count, most: MAX_LAYERS, version });
        }
        let first = match NonNull::new(layers) {
            Some(layers) => layers,
            None if count == 0 => NonNull::dangling(),
            None => {
                return Err(DeepStreamError::Null { what: "an array of layers", version });
            }
        };
        Ok((0..count).map(move |index| {
            // SAFETY: each array has `count` entries, unless the pointer to it is null.
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
}

/// A model's outputs for a frame or an object, `NvDsInferTensorMeta`, and the `NvDsUserMeta` that contains it.
#[derive(Clone, Copy, Debug)]
pub struct TensorMeta<'l> {
    user: Record,
    tensor: Record,
    lifetime: PhantomData<&'l ()>,
}

/// The model description of tensors.
#[derive(Clone, Copy, Debug)]
pub struct NetworkInfo {
    /// Width and height of the model's input. When a buffer is copied, nvinfer up to 7.1 does not copy these
    /// numbers, so they can have any value in the copy.
    pub size: [u32; 2],
    /// True if the frame or object was scaled without distortion; `None` if the tensors do not say so.
    pub maintain_aspect_ratio: Option<bool>,
    /// True if the scaled picture has borders on both sides; `None` if the tensors do not say so.
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
    /// Returns the name, or `None` if it is null.
    pub fn name(&self) -> Option<&'a CStr> {
        // SAFETY: the layer has this field in every layout. The string does not change as long as the buffer has
        // the tensors.
        unsafe {
            let name = self.layer.read::<*const c_char>(layer::NAME);
            (!name.is_null()).then(|| CStr::from_ptr(name))
        }
    }

    /// Returns the type of the elements.
    pub fn element_type(&self) -> ElementType {
        // SAFETY: the layer has this field in every layout.
        layout::element_type(unsafe { self.layer.read(layer::TYPE) })
    }

    /// Returns the dimensions without the batch dimension, and the number of elements.
    ///
    /// # Errors
    /// If there are more than [`MAX_DIMS`] dimensions. The error is their number.
    pub fn dims(&self) -> Result<(ArrayVec<usize, MAX_DIMS>, usize), usize> {
        // SAFETY: the layer has these fields in every layout.
        unsafe {
            let count = self.layer.read::<u32>(layer::DIMS + dims::NUM_DIMS) as usize;
            if count > MAX_DIMS {
                return Err(count);
            }
            let all: [u32; MAX_DIMS] = self.layer.read(layer::DIMS + dims::DIMS);
            let elements = self.layer.read::<u32>(layer::DIMS + dims::ELEMENTS) as usize;
            Ok((all[..count].iter().map(|&dim| dim as usize).collect(), elements))
        }
    }
}
