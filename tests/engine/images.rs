// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches whose images are in separate allocations. Every engine's result equals its result for
//! contiguous memory, to the bit.

use fastrand::Rng;
use nmsfilter_core::decoder::{self, Field, Options, PlainLayout};
use nmsfilter_core::device::{Device, DeviceBuffer, PinnedBuffer, Ready, Stream};
use nmsfilter_core::engine::{Cuda, Engine, Job, Outcome, Params, Reference};
use nmsfilter_core::nms::{Backend, Nms};
use nmsfilter_core::tensor::{
    DeviceSlice, ElementType, Elements, Images, Shape, Storage, TensorError, TensorProblem,
    TensorView,
};

use crate::layout::{error, every_engine};
use crate::support::engines::{self, bits};
use crate::support::scene::Scene;

/// How the images of a tensor are arranged in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrangement {
    /// Images are contiguous.
    Contiguous,
    /// Images are separated by gaps of equal size.
    InStride,
    /// Images are in random order, separated by gaps of random sizes.
    Scattered,
}

/// A tensor whose images are parts of one block of memory, separated by other bytes.
pub struct Arranged<'a> {
    id: &'a str,
    element: ElementType,
    shape: Shape,
    /// The memory, in words of 8 bytes, so that it is aligned for every element type.
    block: Vec<u64>,
    /// Byte offset of each image.
    offsets: Vec<usize>,
    /// Bytes per image.
    len: usize,
}

impl<'a> Arranged<'a> {
    /// Arranges the images of a contiguous tensor in host memory. Its first dimension is the number
    /// of images.
    pub fn new(tensor: &TensorView<'a>, arrangement: Arrangement, random: &mut Rng) -> Self {
        let Storage::Host(bytes) = tensor.storage else { panic!("a tensor in host memory") };
        let (images, size) = (tensor.shape[0], tensor.element.size().unwrap());
        let len = bytes.len() / images;
        let mut order: Vec<usize> = (0..images).collect();
        let stride_gap = random.usize(1..40) * size;
        if arrangement == Arrangement::Scattered {
            random.shuffle(&mut order);
        }
        let (mut offsets, mut end) = (vec![0; images], 0);
        for image in order {
            end += match arrangement {
                Arrangement::Contiguous => 0,
                Arrangement::InStride => stride_gap,
                Arrangement::Scattered => random.usize(0..40) * size,
            };
            offsets[image] = end;
            end += len;
        }
        // The bytes of the gaps are NaN when they are read as numbers.
        let mut block = vec![u64::MAX; end.div_ceil(8) + 1];
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut block);
        for (image, &offset) in offsets.iter().enumerate() {
            all[offset..offset + len].copy_from_slice(&bytes[image * len..][..len]);
        }
        let (id, element, shape) = (tensor.id, tensor.element, tensor.shape.clone());
        Self { id, element, shape, block, offsets, len }
    }

    fn view<'s>(&'s self, storage: Storage<'s>) -> TensorView<'s> {
        TensorView::new(self.id, self.element, self.shape.clone(), storage)
    }

    /// Returns the images in host memory.
    fn on_host(&self) -> Vec<Storage<'_>> {
        let all: &[u8] = bytemuck::cast_slice(&self.block);
        self.offsets.iter().map(|&offset| Storage::Host(&all[offset..offset + self.len])).collect()
    }

    /// Returns the images in device memory.
    fn on_device<'s>(&self, copy: &'s DeviceBuffer) -> Vec<Storage<'s>> {
        let slice = |&offset: &usize| {
            // SAFETY: the copy is complete, as long as the block, and outlives the result.
            unsafe { DeviceSlice::new(copy.address() + offset as u64, self.len, Ready::Now) }
        };
        self.offsets.iter().map(|offset| Storage::Device(slice(offset))).collect()
    }

    /// Returns true if the distance between consecutive images is constant and not negative.
    fn is_in_stride(&self) -> bool {
        let distances: Vec<isize> =
            self.offsets.windows(2).map(|pair| pair[1] as isize - pair[0] as isize).collect();
        distances.iter().all(|&distance| distance == distances[0] && distance >= 0)
    }

    /// Returns the size of the address table in bytes; 0 if the tensor needs none.
    fn table_bytes(&self) -> u64 {
        if self.is_in_stride() { 0 } else { 8 * self.offsets.len() as u64 }
    }
}

/// Copies `bytes` to device memory.
fn upload(stream: &Stream, bytes: &[u8]) -> DeviceBuffer {
    let mut pinned = PinnedBuffer::new(stream.device(), bytes.len()).unwrap();
    let copy = DeviceBuffer::new(stream.device(), bytes.len()).unwrap();
    pinned.as_mut_slice().copy_from_slice(bytes);
    stream.upload(&pinned, &copy, bytes.len()).unwrap();
    stream.synchronize().unwrap();
    copy
}

type Bits = Vec<(Vec<[u32; 7]>, usize, usize)>;

fn all_bits(outcome: &Outcome<'_>) -> Bits {
    outcome.groups().map(|image| bits(&image)).collect()
}

/// A batch and its expected result.
struct Case {
    joined: Scene,
    images: usize,
    expected: Bits,
}

impl Case {
    fn new(seed: u64) -> Self {
        let most = if seed.is_multiple_of(4) { 64 } else { 5 };
        let batch = Scene::batch(seed, most);
        let (joined, images) = (Scene::joined(&batch), batch.len());
        let (tensors, layout) = joined.tensors();
        let expected = all_bits(
            &Reference::default()
                .run(Job::new(&tensors, &layout, &joined.params, &joined.places()))
                .unwrap(),
        );
        Self { joined, images, expected }
    }

    /// Returns an arrangement for each tensor. The second tensor may be contiguous.
    fn arrangements(seed: u64) -> [Arrangement; 2] {
        use Arrangement::{Contiguous, InStride, Scattered};
        let all = [Contiguous, InStride, Scattered];
        [all[(seed % 3) as usize], all[(seed / 3 % 3) as usize]]
    }
}

#[test]
fn images_in_memories_of_their_own_give_the_same_bits_as_in_one_memory() {
    let (mut reference, mut fast) = (Reference::default(), engines::fast());
    let (batches, mut images, mut survivors) = (engines::scene_count(400), 0, 0);
    for seed in 0..batches {
        let case = Case::new(seed);
        let (tensors, layout) = case.joined.tensors();
        let mut random = Rng::with_seed(seed);
        let arranged: Vec<Arranged<'_>> = tensors
            .iter()
            .zip(Case::arrangements(seed))
            .map(|(tensor, arrangement)| Arranged::new(tensor, arrangement, &mut random))
            .collect();
        let storages: Vec<_> = arranged.iter().map(Arranged::on_host).collect();
        let mut views: Vec<_> = arranged
            .iter()
            .zip(&storages)
            .map(|(arranged, storages)| arranged.view(Storage::Images(storages)))
            .collect();
        let whole = random.usize(0..4);
        if whole < tensors.len() && tensors.len() > 1 {
            // Boxes and scores are in different kinds of memory.
            views[whole] = tensors[whole].clone();
        }
        let params = &case.joined.params;
        let what = || format!("seed {seed}, {} images: {:?}", case.images, case.joined);
        let found =
            reference.run(Job::new(&views, &layout, params, &case.joined.places())).unwrap();
        assert_eq!(all_bits(&found), case.expected, "reference, {}", what());
        let found = fast.run(Job::new(&views, &layout, params, &case.joined.places())).unwrap();
        assert_eq!(all_bits(&found), case.expected, "{}", what());
        images += case.images;
        survivors += case.expected.iter().map(|(survivors, ..)| survivors.len()).sum::<usize>();
    }
    println!("{batches} batches of {images} images: {survivors} survivors");
    assert!(images > 3 * batches as usize && survivors > 2 * images);
}

#[test]
#[ignore = "needs a GPU"]
fn images_in_device_memory_are_read_in_place_and_a_table_is_uploaded_only_without_stride() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let batches = engines::scene_count(600);
    let (mut tables, mut strides) = (0, 0);
    for seed in 0..batches {
        let case = Case::new(seed);
        let (tensors, layout) = case.joined.tensors();
        let mut random = Rng::with_seed(seed);
        let arrange = |(tensor, arrangement)| Arranged::new(tensor, arrangement, &mut random);
        let arranged: Vec<Arranged<'_>> =
            tensors.iter().zip(Case::arrangements(seed)).map(arrange).collect();
        let copies: Vec<DeviceBuffer> =
            arranged.iter().map(|a| upload(&stream, bytemuck::cast_slice(&a.block))).collect();
        let storages: Vec<_> =
            arranged.iter().zip(&copies).map(|(a, copy)| a.on_device(copy)).collect();
        let views: Vec<_> =
            arranged.iter().zip(&storages).map(|(a, s)| a.view(Storage::Images(s))).collect();
        let table: u64 = arranged.iter().map(Arranged::table_bytes).sum();
        // A new engine has no class thresholds, class rules and tables on the GPU yet.
        let mut cuda = Cuda::new(Some(0)).unwrap();
        let params = &case.joined.params;
        let of_classes = 4 * params.thresholds.per_class.len() + 20 * params.class_rules.len();
        for uploaded in [table + of_classes as u64, 0, 0] {
            let outcome =
                cuda.run(Job::new(&views, &layout, params, &case.joined.places())).unwrap();
            let what = || format!("seed {seed}, {} images: {:?}", case.images, case.joined);
            assert_eq!(all_bits(&outcome), case.expected, "{}", what());
            assert_eq!(outcome.device.bytes_uploaded, uploaded, "{}", what());
        }
        tables += u64::from(table > 0);
        strides += u64::from(table == 0 && case.images > 1);
    }
    println!("{batches} batches: {tables} with a table, {strides} in stride");
    assert!(tables > batches / 5 && strides > batches / 10, "{tables} tables, {strides} strides");
}

/// Three images with two windows each: x, y, side, score.
const WINDOWS: [[f32; 8]; 3] = [
    [0.0, 0.0, 9.0, 0.9, 1.0, 0.0, 9.0, 0.8],
    [0.0, 0.0, 9.0, 0.3, 20.0, 0.0, 9.0, 0.7],
    [0.0, 0.0, 9.0, 0.1, 20.0, 0.0, 9.0, 0.6],
];

/// Anchors of the survivors of each image.
const SURVIVORS: [&[u32]; 3] = [&[0], &[1, 0], &[1]];

fn windows() -> Vec<Storage<'static>> {
    WINDOWS.iter().map(|image| Storage::Host(bytemuck::cast_slice(image))).collect()
}

fn tensor<'a>(shape: &[usize], images: &'a dyn Images) -> [TensorView<'a>; 1] {
    let shape = Shape::new(shape).unwrap();
    [TensorView::new("windows", ElementType::F32, shape, Storage::Images(images))]
}

/// Returns the layout of three images.
fn layout() -> PlainLayout {
    let all = WINDOWS.concat();
    let options = Options { batch: true, ..Options::default() };
    let tensors = [TensorView::from_slice("windows", &[3, 2, 4], &all)];
    decoder::choose(&tensors, None, options).unwrap().layout.plain(&tensors).unwrap()
}

fn anchors(outcome: &Outcome<'_>) -> Vec<Vec<u32>> {
    outcome.groups().map(|image| image.survivors.iter().map(|d| d.anchor).collect()).collect()
}

/// Returns the message that every engine returns for these images, if the layout has three.
fn message(images: &dyn Images) -> String {
    error(&tensor(&[3, 2, 4], images), layout()).to_string()
}

#[test]
fn every_engine_reads_images_in_memories_of_their_own() {
    let images = windows();
    for mut engine in every_engine() {
        let outcome = engine.run(Job::new(
            &tensor(&[3, 2, 4], &images),
            &layout().into(),
            &Params::default(),
            &engines::places(&layout().into()),
        ));
        let outcome = outcome.unwrap();
        assert_eq!(anchors(&outcome), SURVIVORS, "{}", outcome.engine);
        // Images in host memory are uploaded one by one, without a table.
        let uploaded = if outcome.engine == "cuda" { 3 * 32 } else { 0 };
        assert_eq!(outcome.device.bytes_uploaded, uploaded);
    }
}

#[test]
fn a_number_of_memories_that_is_not_the_first_dimension_is_an_error() {
    let mut images = windows();
    for count in [2, 0] {
        images.truncate(count);
        let expected = format!(
            "tensor windows (f32 3x2x4): expected its first dimension to be the number of images, \
             but there are memories of {count}; correct the shape, or pass a memory for each image"
        );
        assert_eq!(message(&images), expected);
    }
    let more = [windows(), windows()].concat();
    assert!(message(&more).contains("there are memories of 6"));
    // A scalar has no first dimension.
    let one = windows()[..1].to_vec();
    let scalar = PlainLayout { images: 1, anchors: 0, ..layout() };
    let found = error(&tensor(&[], &one), scalar).to_string();
    assert!(found.starts_with("tensor windows (f32 scalar): expected its first"), "{found}");
}

#[test]
fn an_image_whose_memory_is_too_small_missing_or_misaligned_is_an_error_with_its_index() {
    let bytes: &[u8] = bytemuck::cast_slice(&WINDOWS[1]);
    let with = |storage: Storage<'static>| [windows()[0], storage, windows()[2]].to_vec();
    let bytes: &'static [u8] = Box::leak(bytes.to_vec().into_boxed_slice());
    assert_eq!(
        message(&with(Storage::Host(&bytes[..31]))),
        "tensor windows (f32 1x2x4), image 1 of 0 to 2: its shape needs 32 bytes, but its memory \
         holds 31; correct the shape or the memory"
    );
    let found = message(&with(Storage::Missing));
    let expected = "tensor windows (f32 1x2x4), image 1 of 0 to 2: its metadata carries no memory";
    assert!(found.starts_with(expected), "{found}");
    let words: &'static [u64] = Box::leak(vec![0u64; 5].into_boxed_slice());
    let found = message(&with(Storage::Host(&bytemuck::cast_slice(words)[2..34])));
    let expected = "tensor windows (f32 1x2x4), image 1 of 0 to 2: its memory starts at an address";
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn an_image_that_consists_of_images_is_an_error() {
    let inner = windows();
    let images = vec![windows()[0], windows()[1], Storage::Images(&inner)];
    let found = message(&images);
    let expected = "tensor windows (f32 1x2x4), image 2 of 0 to 2: expected its first dimension";
    assert!(found.starts_with(expected), "{found}");
    let alone = vec![inner[0]];
    let images = vec![windows()[0], windows()[1], Storage::Images(&alone)];
    let found = message(&images);
    let expected = "tensor windows (f32 1x2x4), image 2 of 0 to 2: its images are in separate";
    assert!(found.starts_with(expected), "{found}");
    assert!(!tensor(&[3, 2, 4], &images)[0].is_on_device());
}

#[test]
fn a_batch_whose_memories_are_fewer_than_its_images_is_an_error_before_its_numbers_are_looked_at() {
    for held in 0..3 {
        let images = windows()[..held].to_vec();
        // Boxes in center form, whose numbers are compared with the reading.
        let shape = Shape::new(&[3, 6, 8]).unwrap();
        let storage = Storage::Images(&images);
        let tensors = [TensorView::new("yolo-v8-out", ElementType::F32, shape, storage)];
        let mut nms = Nms::new(Backend::Cpu, None).unwrap();
        nms.options.batch = true;
        let error = nms.run(&tensors).unwrap_err().to_string();
        let expected = format!("there are memories of {held}");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn a_layout_that_reads_different_elements_of_each_image_is_an_error() {
    let images = windows();
    let tensors = tensor(&[3, 2, 4], &images);
    let boxes = |field: Field| PlainLayout { boxes: field, ..layout() };
    let PlainLayout { boxes: field, .. } = layout();
    for (layout, last) in [
        (PlainLayout { images: 2, ..layout() }, 6),
        (PlainLayout { images: 1, ..layout() }, 6),
        (boxes(Field { image_stride: 0, ..field }), 6),
        (boxes(Field { image_stride: 7, ..field }), 6),
        // The field stays within the tensor, and within three images at a smaller stride, but not
        // within one image.
        (PlainLayout { images: 1, ..boxes(Field { offset: 8, ..field }) }, 14),
        (PlainLayout { images: 1, anchors: 3, ..layout() }, 10),
    ] {
        let text = error(&tensors, layout).to_string();
        assert!(text.contains("separate allocations of 8 elements each"), "{text}");
        assert!(text.contains("the layout's boxes"), "{text}");
        assert!(text.contains(&format!("need element {last} of an image")), "{text}");
    }
    let scores = Field { image_stride: 7, ..layout().scores };
    let found = error(&tensors, PlainLayout { scores, ..layout() }).to_string();
    assert_eq!(
        found,
        "tensor windows (f32 3x2x4): its images are in separate allocations of 8 elements each, \
         but the layout's scores are of 3 images at a stride of 7 elements and need element 7 of \
         an image; make the layout for all of the tensor's images, with that stride"
    );
}

#[test]
fn images_in_memories_of_their_own_are_not_read_as_one_tensor() {
    let images = windows();
    let [tensor] = tensor(&[3, 2, 4], &images);
    assert_eq!(tensor.checked_len(), Ok(96));
    let expected = TensorError::new("windows (f32 3x2x4)", TensorProblem::SeparateImages);
    assert_eq!(tensor.elements().unwrap_err(), expected);
    assert_eq!(tensor.device().unwrap_err(), expected);
    let image = tensor.image(2).unwrap();
    assert_eq!(image.to_string(), "windows (f32 1x2x4), image 2 of 0 to 2");
    let Ok(Elements::F32(elements)) = image.elements() else { panic!("elements of type f32") };
    assert_eq!(elements, WINDOWS[2]);
    assert!(image.image(0).is_none());
    // Programs can also pass a slice of images.
    let slice = &images[1..];
    let tensor = TensorView::new(
        "windows",
        ElementType::F32,
        Shape::new(&[2, 2, 4]).unwrap(),
        Storage::Images(&slice),
    );
    assert_eq!(tensor.checked_len(), Ok(64));
}
