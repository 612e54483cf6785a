// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of models that are attached to frames and to objects.
//!
//! In: a frame or an object of a locked batch. Out: its tensors, their model description, and the name, type, dimensions and
//! addresses of each output layer.

use std::ffi::CStr;
use std::ptr::NonNull;

use arrayvec::ArrayVec;

use super::DeepStreamError;
use super::batch::{FrameMeta, LockedBatch, type_of};
use super::found_object::ObjectMeta;
use super::layout::{
    self, LAYER_SIZE, MAX_DIMS, StructureLayout, TENSOR_OUTPUT_META, dims, frame, layer, network,
    tensor, user,
};
use super::library::Remove;
use super::record::{Field, List, Record};
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
        self.tensors_in(frame, frame::USER_METAS)
    }

    /// Returns the outputs of models for `object`, in the order of the object's list. nvinfer attaches them with
    /// `process-mode=2`.
    pub fn object_tensors<'l>(
        &'l self,
        object: ObjectMeta<'l>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        self.tensors_in(object, self.layout().object_user_metas)
    }

    /// Returns the outputs of models for `region`, in the order of the region's list. nvinfer attaches them with
    /// `input-tensor-meta=1`.
    pub fn region_tensors<'l>(
        &'l self,
        region: RegionMeta<'l>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        self.tensors_in(region.record, region.layout.user_metas)
    }

    /// Returns the tensors in a list of user metadata of `owner`.
    fn tensors_in<'l, S: Copy>(
        &'l self,
        owner: Record<'l, S>,
        metas: Field<S, List<user::S>>,
    ) -> impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>> {
        let version = self.version();
        self.list(owner, metas, "user metadata").filter_map(move |meta| {
            let user = match meta {
                Ok(meta) => meta,
                Err(error) => return Some(Err(error)),
            };
            (type_of(user) == TENSOR_OUTPUT_META).then(|| {
                let data = NonNull::new(user.read(user::DATA))
                    .ok_or_else(|| DeepStreamError::null(version, "an NvDsInferTensorMeta"))?;
                // SAFETY: that is the data of user metadata of this type.
                Ok(TensorMeta { user, tensor: unsafe { Record::new(data) } })
            })
        })
    }

    /// Removes the tensors of the element with the id `unique_id` from `frame`. DeepStream then calls their release
    /// functions, which return the memory to this element.
    pub fn remove_tensors(&self, frame: FrameMeta<'_>, unique_id: u32) {
        let remove = self.0.library.nvds_remove_user_meta_from_frame;
        // SAFETY: the function removes metadata of frames.
        unsafe { self.remove_tensors_in(frame, frame::USER_METAS, remove, unique_id) };
    }

    /// Removes the tensors of the element with the id `unique_id` from `object`, as from a frame.
    pub fn remove_object_tensors(&self, object: ObjectMeta<'_>, unique_id: u32) {
        let remove = self.0.library.nvds_remove_user_meta_from_object;
        let metas = self.layout().object_user_metas;
        // SAFETY: the function removes metadata of objects.
        unsafe { self.remove_tensors_in(object, metas, remove, unique_id) };
    }

    /// # Safety
    /// `remove` must remove metadata from this list.
    unsafe fn remove_tensors_in<S: Copy>(
        &self,
        owner: Record<'_, S>,
        metas: Field<S, List<user::S>>,
        remove: Remove,
        unique_id: u32,
    ) {
        let tensors = || self.tensors_in(owner, metas);
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
        tensor.tensor.read(tensor::UNIQUE_ID)
    }

    /// Returns the index of the GPU whose memory contains `tensor`.
    pub fn gpu(&self, tensor: TensorMeta<'_>) -> u32 {
        tensor.tensor.read(tensor::GPU_ID).max(0).unsigned_abs()
    }

    /// Returns the model description of `tensor`.
    pub fn model(&self, tensor: TensorMeta<'_>) -> NetworkInfo {
        let StructureLayout { maintain_aspect_ratio, symmetric_padding, .. } = *self.layout();
        let record = tensor.tensor;
        let flag = |field: Option<Field<tensor::S, i32>>| match record.read(field?) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        NetworkInfo {
            size: record.part(tensor::NETWORK).read(network::SIZE),
            maintain_aspect_ratio: flag(maintain_aspect_ratio),
            symmetric_padding: flag(symmetric_padding),
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
        let flags = || maintain_aspect_ratio.into_iter().chain(symmetric_padding);
        for copy in self.tensors(frame).chain(self.tensors_of_objects(frame)) {
            let copy = copy?;
            let of_objects = original.tensors_of_objects(original_frame);
            let mut originals = original.tensors(original_frame).chain(of_objects).flatten();
            let is_same = |&tensor: &_| original.unique_id(tensor) == self.unique_id(copy);
            let Some(same) = originals.find(is_same) else { continue };
            let (copy, same) = (copy.tensor, same.tensor);
            // SAFETY: both locks are held.
            unsafe {
                let size = same.part(tensor::NETWORK).read(network::SIZE);
                copy.part(tensor::NETWORK).write(network::SIZE, size);
                flags().for_each(|flag| copy.write(flag, same.read(flag)));
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
        let count = record.read(tensor::NUM_LAYERS) as usize;
        let [host, device] = [tensor::HOST, tensor::DEVICE].map(|field| record.read(field));
        let version = self.version();
        if count > MAX_LAYERS {
            return Err(DeepStreamError::damaged(
                version,
                format_args!(
                    "tensors of a frame have {count} output layers; expected at most {MAX_LAYERS}"
                ),
            ));
        }
        let first = match NonNull::new(record.read(tensor::LAYERS)) {
            Some(layers) => layers,
            None if count == 0 => NonNull::dangling(),
            None => return Err(DeepStreamError::null(version, "an array of layers")),
        };
        Ok((0..count).map(move |index| {
            // SAFETY: each array has `count` entries, unless the pointer to it is null.
            unsafe {
                let address =
                    |array: *const u64| if array.is_null() { 0 } else { array.add(index).read() };
                LayerMeta {
                    layer: Record::new(first.byte_add(index * LAYER_SIZE)),
                    host: address(host),
                    device: address(device),
                }
            }
        }))
    }
}

impl<'a> LockedBatch<'a> {
    /// Returns the name of a layer, or `None` if it is null.
    pub fn layer_name(&self, layer: &LayerMeta<'_>) -> Option<&'a CStr> {
        let name = layer.layer.read(layer::NAME);
        // SAFETY: the string does not change as long as the buffer has the tensors.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
    }
}

/// A model's outputs for a frame or an object, `NvDsInferTensorMeta`, and the `NvDsUserMeta` that contains it.
#[derive(Clone, Copy, Debug)]
pub struct TensorMeta<'l> {
    user: Record<'l, user::S>,
    tensor: Record<'l, tensor::S>,
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
    layer: Record<'a, layer::S>,
    /// The host address, or 0.
    pub host: u64,
    /// The device address, or 0.
    pub device: u64,
}

impl LayerMeta<'_> {
    /// Returns the type of the elements.
    pub fn element_type(&self) -> ElementType {
        layout::element_type(self.layer.read(layer::TYPE))
    }

    /// Returns the dimensions without the batch dimension, and the number of elements; `None` if there are more than
    /// [`MAX_DIMS`] dimensions.
    pub fn dims(&self) -> Option<(ArrayVec<usize, MAX_DIMS>, usize)> {
        let dims = self.layer.part(layer::DIMS);
        let all = dims.read(dims::DIMS);
        let dimensions = all.get(..dims.read(dims::NUM_DIMS) as usize)?;
        let elements = dims.read(dims::ELEMENTS) as usize;
        Some((dimensions.iter().map(|&dim| dim as usize).collect(), elements))
    }
}
