// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes DeepStream's objects (`NvDsObjectMeta`).
//!
//! In: the regions of each frame of a batch, in the muxer's coordinates. Out: one object per region on its frame,
//! with the fields that nvinfer also sets, so that nvtracker, nvdsosd and nvmsgconv can use them.
//!
//! A region's mask becomes the mask of its object: the numbers 0 and 1 with the threshold 0.5, in pixels that cover
//! the object's rectangle. In versions with angles (since 9.0), an oriented box becomes a rectangle with an angle,
//! if the rectangle before the rotation is inside the frame: elements such as nvinfer for objects cut out this
//! rectangle and ignore the angle. Otherwise, the object gets the bounds of the oriented box.
//!
//! An object that was found in another object has that object as its parent.
//!
//! Keypoints are not attached, because `NvDsObjectMeta` has no field for them. Some programs, for example
//! DeepStream-Yolo-Pose, put keypoints into `mask_params`, but nvdsosd then misreads them as a mask of `width` x
//! `height` pixels.

use super::{DetailedRegion, DetailedRegions, FrameId, Labels, MaskRows};
use crate::deepstream::{
    BatchMeta, DeepStreamError, LockedBatch, NewObject, ObjectColors, ObjectMask, ObjectMeta,
};
use crate::input::deepstream::TensorPlace;
use nmsfilter_core::geometry::OrientedBox;

/// Adds the objects of each frame, in the order of its regions, and removes tensors, all while the batch's
/// lock is held. `frames` are in the order of the batch's list. `colors` returns the colors of a class. The objects have
/// the id of the inference element whose tensors were decoded, `unique_id`, as their component id. Its tensors are removed
/// from their owners `remove_from`; regions of interest always keep their tensors.
///
/// # Errors
/// If the metadata is damaged, or if DeepStream does not return an object.
pub(crate) fn attach<'r>(
    batch: BatchMeta<'_>,
    frames: impl IntoIterator<Item = (FrameId, DetailedRegions<'r>)>,
    labels: &mut Labels,
    colors: impl Fn(u32) -> ObjectColors,
    unique_id: u32,
    add_objects: bool,
    remove_from: Option<TensorPlace>,
) -> Result<(), DeepStreamError> {
    let batch = batch.lock();
    let mut frames = frames.into_iter().peekable();
    for (index, frame) in batch.frames()?.enumerate() {
        let Some((id, regions)) = frames.next_if(|(next, _)| next.index == index) else {
            continue;
        };
        let frame = frame?;
        if add_objects {
            batch.set_infer_done(frame);
            let mut parents = Vec::new();
            if regions.regions.iter().any(|region| region.parent.is_some()) {
                parents = batch.objects(frame)?;
            }
            for region in regions.iter() {
                let parent = parent_of(region, &parents);
                let colors = colors(region.region.class);
                let object = object(&batch, id.size, region, labels, unique_id);
                let object = NewObject { colors, ..object };
                match region.mask {
                    None => batch.add_object(frame, &object, None, parent)?,
                    Some(mask) => {
                        let is_set = |column, row| is_set(&mask, object.rect, [column, row]);
                        let [width, height] = [mask.shape.width, mask.shape.height];
                        let mask = ObjectMask { width, height, is_set: &is_set };
                        batch.add_object(frame, &object, Some(mask), parent)?;
                    }
                }
            }
        }
        match remove_from {
            Some(TensorPlace::Frames) => batch.remove_tensors(frame, unique_id),
            Some(TensorPlace::Objects) => {
                for object in batch.object_list(frame) {
                    batch.remove_object_tensors(object?, unique_id);
                }
            }
            // They stay until the buffer is released: `nvds_remove_user_meta_from_roi` of DeepStream 9.0 crashes.
            Some(TensorPlace::Regions) | None => {}
        }
    }
    Ok(())
}

/// Returns true if the frame already has an object for `region`, with this parent.
pub(crate) fn is_attached(
    batch: BatchMeta<'_>,
    frame: FrameId,
    region: DetailedRegion<'_>,
    labels: &mut Labels,
    unique_id: u32,
) -> bool {
    let batch = batch.lock();
    let object = object(&batch, frame.size, region, labels, unique_id);
    let frame = batch.frames().ok().and_then(|mut frames| frames.nth(frame.index)?.ok());
    frame.is_some_and(|frame| {
        let parent = parent_of(region, &batch.objects(frame).unwrap_or_default());
        batch.has_object(frame, &object, parent)
    })
}

/// Returns the one of the frame's objects in which a region was found.
fn parent_of<'l>(region: DetailedRegion<'_>, objects: &[ObjectMeta<'l>]) -> Option<ObjectMeta<'l>> {
    objects.get(usize::try_from(region.region.parent?).ok()?).copied()
}

/// Creates the object for a region in a frame of this size.
fn object<'l>(
    batch: &LockedBatch<'_>,
    size: [u32; 2],
    detailed: DetailedRegion<'_>,
    labels: &'l mut Labels,
    unique_id: u32,
) -> NewObject<'l> {
    let region = detailed.region;
    let oriented = detailed.oriented.filter(|_| batch.layout().rotation_angle.is_some());
    let (rect, rotation_angle) = oriented
        .and_then(|oriented| rotated(&oriented, size))
        .unwrap_or(([region.x1, region.y1, region.x2 - region.x1, region.y2 - region.y1], 0.0));
    NewObject {
        component_id: unique_id as i32,
        class: region.class as i32,
        confidence: region.confidence,
        rect,
        rotation_angle,
        label: labels.label(region.class).quark.as_str(),
        colors: ObjectColors::default(),
    }
}

/// Returns the rectangle (left, top, width, height) and the clockwise angle in degrees such that rotating the
/// rectangle about its center by the angle gives `oriented`. Returns `None` if the rectangle is not inside a frame
/// of this size.
fn rotated(oriented: &OrientedBox, frame: [u32; 2]) -> Option<([f32; 4], f32)> {
    let &OrientedBox { center, size, angle } = oriented;
    let [left, top] = [0, 1].map(|axis| center[axis] - size[axis] / 2.0);
    let is_inside = |low: f32, axis: usize| low >= 0.0 && low + size[axis] <= frame[axis] as f32;
    (is_inside(left, 0) && is_inside(top, 1))
        .then(|| ([left, top, size[0], size[1]], angle.to_degrees()))
}

/// Returns whether the center of a pixel (column and row) is set in `mask`. The pixel belongs to a grid that covers
/// `rect` and has as many columns and rows as the mask.
fn is_set(mask: &MaskRows<'_>, rect: [f32; 4], pixel: [u32; 2]) -> bool {
    let sides = [mask.shape.width, mask.shape.height];
    let area = mask.shape.area;
    let [column, row] = [0, 1].map(|axis| {
        let side = sides[axis] as f32;
        let at = rect[axis] + (pixel[axis] as f32 + 0.5) * rect[axis + 2] / side;
        (at - area[axis]) / (area[axis + 2] - area[axis]) * side
    });
    let is_inside = |at: f32, axis: usize| at >= 0.0 && at < sides[axis] as f32;
    is_inside(column, 0) && is_inside(row, 1) && mask.is_set(column as usize, row as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::RegionMask;

    const FRAME: [u32; 2] = [640, 480];

    #[test]
    fn an_oriented_box_is_a_rectangle_and_an_angle_in_degrees_if_both_are_inside_the_frame() {
        let oriented = |center, size, angle| OrientedBox { center, size, angle };
        let inside = oriented([100.0, 50.0], [60.0, 20.0], std::f32::consts::FRAC_PI_6);
        let (rect, angle) = rotated(&inside, FRAME).unwrap();
        assert_eq!(rect, [70.0, 40.0, 60.0, 20.0]);
        assert!((angle - 30.0).abs() < 1e-4, "{angle}");
        for center in [[29.9, 50.0], [610.1, 50.0], [100.0, 9.9], [100.0, 470.1]] {
            assert_eq!(rotated(&oriented(center, [60.0, 20.0], 0.1), FRAME), None, "{center:?}");
        }
        assert!(rotated(&oriented([320.0, 240.0], [640.0, 480.0], 0.1), FRAME).is_some());
    }

    /// Creates a mask of 10 x 4 pixels. The first, the second and the last pixel of each row are set.
    fn mask(area: [f32; 4]) -> (RegionMask, Vec<u8>) {
        let shape = RegionMask { width: 10, height: 4, area, bytes: 0..8 };
        (shape, [0xc0, 0x40].repeat(4))
    }

    fn row(area: [f32; 4], rect: [f32; 4], row: u32) -> Vec<u8> {
        let (shape, rows) = mask(area);
        let mask = MaskRows { shape: &shape, rows: &rows };
        (0..10).map(|column| is_set(&mask, rect, [column, row]).into()).collect()
    }

    #[test]
    fn the_pixels_of_an_objects_mask_cover_its_rectangle() {
        let area = [100.0, 50.0, 200.0, 90.0];
        assert_eq!(row(area, [100.0, 50.0, 100.0, 40.0], 3), [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        // The rectangle is the left half, so each pixel occurs twice.
        assert_eq!(row(area, [100.0, 50.0, 50.0, 20.0], 3), [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
        // The rectangle is twice as wide and begins at the sixth pixel. Pixels outside the mask are not set.
        assert_eq!(row(area, [145.0, 50.0, 200.0, 40.0], 0), [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        // Rectangles beside and below the mask, and with invalid numbers.
        for rect in [[300.0, 50.0, 9.0, 9.0], [100.0, 90.0, 9.0, 9.0], [f32::NAN, 50.0, 9.0, 9.0]] {
            assert_eq!(row(area, rect, 0), [0; 10], "{rect:?}");
        }
        assert_eq!(row([7.0; 4], [7.0, 7.0, 9.0, 9.0], 0), [0; 10]);
    }
}
