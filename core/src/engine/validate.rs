// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks that every engine makes before it reads an element.
//!
//! In: tensors, layout, parameters, places of images. Out: an error if the layout addresses
//! anything that does not exist. The fields of [`Layout`] are public, so a program can set any
//! values.

use super::place::image_groups;
use super::{
    BoxPixels, EngineError, ImagePlace, Job, MAX_FRAME_SIDE, MAX_IMAGES, MAX_PROTOTYPE_SIDE,
    MaskSize, Method, Params,
};
use crate::decoder::layout::{
    BoxFormat, ColumnKind, Field, Group, Layout, MAX_BINS, MAX_COLUMN_COMPONENTS, MAX_COLUMNS,
    MAX_GROUPS, Reference,
};
use crate::decoder::{MAX_CLASSES, MAX_INPUTS};
use crate::geometry::{FrameMap, Overlap};
use crate::tensor::{HostImages, TensorError, TensorProblem, TensorView};
use crate::wording::Setting::MultiLabel;

/// Checks that indices fit in 32 bits, and that every element that `layout` addresses is within the
/// shape of its tensor. Reads no elements but numbers of images and, unless there is an error, does not allocate.
pub(super) fn validate(
    Job { tensors, layout, params, images: places }: Job<'_>,
) -> Result<(), EngineError> {
    // First, so that a run returns the errors of `Engine::supports`.
    check_methods(layout, params)?;
    let &Layout { images, classes, .. } = layout;
    if images == 0 || images > MAX_IMAGES {
        let text = format!("the layout has {images} images; expected 1 to {MAX_IMAGES}");
        return Err(EngineError::Layout(text));
    }
    check_places(layout, params, places)?;
    // An anchor's index in its group is a u32, and with multi_label so is the index of a pair of
    // anchor and class.
    let anchors = layout.anchors().saturating_mul(greatest_group(places));
    if u32::try_from(anchors).is_err() {
        let text = format!("{anchors} anchors are more than the {} supported", u32::MAX);
        return Err(EngineError::Layout(text));
    }
    let scores = layout.score.components;
    let wrong_classes = |classes: usize| {
        let text = format!("the layout has {classes} classes; expected 1 to {MAX_CLASSES}");
        Err(EngineError::Layout(text))
    };
    if classes == 0 || classes > MAX_CLASSES {
        return wrong_classes(classes);
    }
    let is_class_in_range = scores > 0
        && scores <= MAX_CLASSES
        && layout.score.first_class as usize + scores <= classes.max(1);
    if !is_class_in_range && !layout.has_class_field() {
        return wrong_classes(scores);
    }
    let pairs = (anchors as u64).saturating_mul(scores as u64);
    if params.multi_label && u32::try_from(pairs).is_err() {
        return Err(EngineError::Method(format!(
            "{anchors} anchors of {scores} classes are more pairs than the {} that {MultiLabel} supports; set \
             {MultiLabel} to false",
            u32::MAX
        )));
    }
    let read = &layout.tensors();
    check_structure(layout, read)?;
    check_masks(layout)?;
    layout.fields().try_for_each(|named| {
        check_field(named.name, *named.field, [images, named.anchors, named.components], tensors)
    })?;
    // Checks the memory of all images before the first is read, so that every engine returns an
    // equal error.
    for tensor in read.iter().map(|&index| &tensors[index]) {
        if tensor.has_separate_images() {
            tensor.checked_len()?;
        }
    }
    check_image_numbers(tensors, layout)
}

/// Checks that rows are of their image, whose number they have, or 0. A tensor without a dimension for images could have
/// rows of several.
fn check_image_numbers(tensors: &[TensorView<'_>], layout: &Layout) -> Result<(), EngineError> {
    let Some(field) = layout.image.filter(|_| layout.anchors() > 0) else { return Ok(()) };
    let tensor = &tensors[field.tensor];
    let on_device = |error| match error {
        TensorError { tensor, problem: TensorProblem::NotOnHost } => {
            EngineError::ImagesOnDevice { tensor }
        }
        error => error.into(),
    };
    let host = HostImages::new(tensor).map_err(on_device)?;
    for image in 0..layout.images {
        let number = host.numbers(image).map_err(on_device)?;
        let field = if tensor.has_separate_images() { field } else { field.of_image(image) };
        let number = |row| number(field.index(row, 0));
        if let Some(row) =
            (0..layout.anchors()).find(|&row| number(row) > 0.0 && number(row) != image as f32)
        {
            return Err(EngineError::Layout(format!(
                "tensor {tensor}: row {row} is of image {}; expected rows of one image, with the number 0, or below 0 \
                 for none: pass the rows of each image in a tensor of their own, or correct `decoder`",
                number(row)
            )));
        }
    }
    Ok(())
}

/// Checks that the measure of overlap and the method are defined for the layout.
pub(super) fn check_methods(layout: &Layout, params: &Params) -> Result<(), EngineError> {
    check_overlap(layout.is_oriented(), params.overlap)?;
    check_method(layout.is_oriented(), params.method)?;
    check_column(layout, params.method)
}

/// Checks that the measure of overlap is defined for the boxes, which are oriented or upright.
///
/// # Errors
/// [`EngineError::Overlap`] if it is not.
pub(crate) fn check_overlap(is_oriented: bool, overlap: Overlap) -> Result<(), EngineError> {
    let boxes = match (is_oriented, overlap) {
        (true, Overlap::Diou) => "oriented",
        (false, Overlap::ProbIou) => "upright",
        _ => return Ok(()),
    };
    Err(EngineError::Overlap { overlap: overlap.name(), boxes })
}

/// Checks that the method is defined for the boxes, which are oriented or upright.
///
/// # Errors
/// [`EngineError::Method`] if it is not.
pub(crate) fn check_method(is_oriented: bool, method: Method) -> Result<(), EngineError> {
    if is_oriented && !method.allows_oriented() {
        return Err(EngineError::Method(format!(
            "the method {} is not defined for oriented boxes; choose greedy, map-reduce or none",
            method.name()
        )));
    }
    Ok(())
}

/// Checks that the layout has the column by which the method decides.
///
/// # Errors
/// [`EngineError::Method`] if it has not.
fn check_column(layout: &Layout, method: Method) -> Result<(), EngineError> {
    let Some(kind) = method.column().filter(|&kind| layout.column_of(kind).is_none()) else {
        return Ok(());
    };
    Err(EngineError::Method(format!(
        "the method {} reads a column of the kind {}, but decoder {} has none; describe the tensors in a layout file \
         with this column, or choose another method",
        method.name(),
        kind.name(),
        layout.decoder
    )))
}

fn expect(is: bool, expected: &'static str) -> Result<(), EngineError> {
    if is {
        return Ok(());
    }
    Err(EngineError::Layout(format!("the layout: expected {expected}; correct the layout")))
}

/// Checks that the parts of the layout, which reads the tensors `read`, fit together.
fn check_structure(layout: &Layout, read: &[usize]) -> Result<(), EngineError> {
    let groups = &layout.groups;
    let first = groups.first();
    let has = |group: &Group| {
        let Group { sizes, angle, objectness, class, columns, .. } = group;
        (sizes.is_some(), angle.is_some(), objectness.is_some(), class.is_some(), columns.len())
    };
    expect((1..=MAX_GROUPS).contains(&groups.len()), "1 to 8 groups of anchors")?;
    expect(
        groups.iter().all(|group| first.is_some_and(|first| has(first) == has(group))),
        "the same fields in every group of anchors",
    )?;
    expect(
        layout.columns.len() <= MAX_COLUMNS
            && first.is_some_and(|group| group.columns.len() == layout.columns.len())
            && layout.columns.iter().all(|column| column.components > 0)
            && layout.column_components() <= MAX_COLUMN_COMPONENTS,
        "at most 4 columns of 1 to 1024 components together, and a field for each in every group",
    )?;
    let count = |kind| layout.columns.iter().filter(|column| column.kind == kind).count();
    let density = layout.column_of(ColumnKind::Density).map(|index| &layout.columns[index]);
    expect(
        count(ColumnKind::Density) <= 1
            && count(ColumnKind::Embedding) <= 1
            && density.is_none_or(|column| column.components == 1),
        "at most one column of densities, of one component, and one of embeddings",
    )?;
    expect(
        !layout.has_class_field() || layout.score.components == 1,
        "one score per anchor where the class has a field",
    )?;
    expect(
        !layout.is_oriented() || layout.boxes.format == BoxFormat::Center,
        "boxes of center form where they have angles",
    )?;
    let has_sizes = first.is_some_and(|group| group.sizes.is_some());
    expect(
        !has_sizes
            || (layout.boxes.format == BoxFormat::Center
                && layout.boxes.bins == 1
                && !layout.is_oriented()),
        "upright boxes of center form where sizes have a field",
    )?;
    let is_cell = |group: &Group| match &group.reference {
        Reference::Grid(grid) => grid.per_cell == 1,
        Reference::None | Reference::Priors(_) | Reference::Table(_) => false,
    };
    expect(
        !layout.score.peaks || (groups.iter().all(is_cell) && !layout.has_class_field()),
        "a grid with one anchor in each cell, and a score for each class, where scores are peaks",
    )?;
    expect(
        layout.pairs.is_none()
            || (groups.len() == 1 && !layout.score.peaks && !layout.has_class_field()),
        "one group of anchors with a score for each class, without peaks, where there are pairs",
    )?;
    expect((1..=MAX_BINS).contains(&layout.boxes.bins), "1 to 256 bins per component of a box")?;
    expect(
        read.len() < MAX_INPUTS || layout.fields().all(|named| read.contains(&named.field.tensor)),
        "at most 32 tensors",
    )?;
    let priors = layout.priors.as_ref().map_or(0, |priors| priors.len());
    for group in groups {
        let is_complete = match &group.reference {
            Reference::None | Reference::Priors(_) => true,
            Reference::Grid(grid) => {
                (1..=u32::MAX as usize).contains(&grid.columns)
                    && (1..=u32::MAX as usize).contains(&grid.per_cell)
            }
            Reference::Table(first) => {
                first.checked_add(group.anchors).is_some_and(|end| end <= priors)
            }
        };
        expect(is_complete, "a prior or a grid cell for every anchor")?;
    }
    Ok(())
}

/// Checks the prototypes.
fn check_masks(layout: &Layout) -> Result<(), EngineError> {
    let Some(prototypes) = &layout.prototypes else { return Ok(()) };
    let sides = 1..=MAX_PROTOTYPE_SIDE;
    let has_column = layout.columns.get(prototypes.column).is_some();
    expect(has_column, "a column with the coefficients of the prototypes")?;
    let has_sides = sides.contains(&prototypes.width) && sides.contains(&prototypes.height);
    expect(has_sides, "prototypes of 1 to 16384 columns and rows")
}

/// Checks the places of images: their number, their groups, and the frame that boxes or masks need.
fn check_places(
    layout: &Layout,
    params: &Params,
    places: &[ImagePlace],
) -> Result<(), EngineError> {
    if places.len() != layout.images {
        return Err(EngineError::Layout(format!(
            "there are {} places for {} images; pass one place per image of the layout",
            places.len(),
            layout.images
        )));
    }
    let has_masks_of_frames = layout.prototypes.is_some() && params.mask_size == MaskSize::Frame;
    let mut group = 0;
    for (image, place) in places.iter().enumerate() {
        let expect = |is: bool, expected: &'static str| {
            if is { Ok(()) } else { Err(EngineError::Place { image, expected }) }
        };
        let is_next = place.group == group || (image > 0 && place.group == group.wrapping_add(1));
        group = place.group;
        expect(is_next, "the images of a group one after the other, and groups numbered from 0")?;
        let is_in_frame = place.boxes == BoxPixels::Frame;
        expect(!is_in_frame || place.frame.is_some(), "a frame for boxes in pixels of the frame")?;
        expect(
            !has_masks_of_frames || place.frame.is_some() == places[0].frame.is_some(),
            "a frame for every image or for none, with masks in pixels of the frame",
        )?;
        let Some(FrameMap { size, ratio, offset }) = &place.frame else { continue };
        expect(
            !has_masks_of_frames || size.iter().all(|side| (1..=MAX_FRAME_SIDE).contains(side)),
            "a frame of 1 to 65536 columns and rows for masks in its pixels",
        )?;
        let are_finite = ratio.iter().chain(offset).all(|number| number.is_finite());
        expect(
            !is_in_frame || (are_finite && ratio.iter().all(|&ratio| ratio > 0.0)),
            "a finite position of the frame in the model's input, and a ratio above 0",
        )?;
        expect(
            !is_in_frame || !layout.is_oriented() || ratio[0] == ratio[1],
            "one ratio for both axes for oriented boxes in pixels of the frame",
        )?;
    }
    Ok(())
}

/// The number of images in the largest group.
pub(super) fn greatest_group(places: &[ImagePlace]) -> usize {
    image_groups(places).map(|group| group.len()).max().unwrap_or(0)
}

/// Checks that a field's elements are within the shape of the tensor: `components` elements per
/// anchor, for `anchors` anchors per image and `images` images. If images are in separate
/// allocations, also checks that each image's elements are within its memory.
fn check_field(
    name: &'static str,
    field: Field,
    [images, anchors, components]: [usize; 3],
    tensors: &[TensorView<'_>],
) -> Result<(), EngineError> {
    let tensor = tensors.get(field.tensor).ok_or_else(|| {
        EngineError::Layout(format!(
            "the layout's {name} are of tensor {}, but there are {} tensors; make the layout for the tensors that are \
             passed",
            field.tensor,
            tensors.len()
        ))
    })?;
    let elements =
        tensor.shape.elements().ok_or_else(|| TensorError::new(tensor, TensorProblem::TooLarge))?;
    if anchors == 0 {
        return Ok(());
    }
    // Numbers of images, anchors and components fit in 32 bits, and strides in 64 bits, so 128 bits
    // do not overflow.
    let steps = |count: usize, stride: usize| (count as u128 - 1) * stride as u128;
    let last = field.offset as u128
        + steps(images, field.image_stride)
        + steps(anchors, field.anchor_stride)
        + steps(components, field.component_stride);
    if last >= elements as u128 {
        return Err(EngineError::Layout(format!(
            "tensor {tensor}: the layout's {name} need element {last}, but it has {elements} elements; correct the \
             layout's offset, strides or number of anchors"
        )));
    }
    if tensor.has_separate_images() {
        // Image i of the layout is image i of the tensor. If both have an equal number of images,
        // the distance between consecutive images is the number of elements in one image.
        let count = tensor.shape.first().copied().unwrap_or(0);
        let held = elements / count.max(1);
        let is_separate = images == count && (images == 1 || field.image_stride == held);
        let last = last - steps(images, field.image_stride);
        if !is_separate || last >= held as u128 {
            return Err(EngineError::Layout(format!(
                "tensor {tensor}: its images are in separate allocations of {held} elements each, but the layout's \
                 {name} are of {images} images at a stride of {} elements and need element {last} of an image; make \
                 the layout for all of the tensor's images, with that stride",
                field.image_stride
            )));
        }
    }
    Ok(())
}
