// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches whose images are in memories of their own: every engine returns what it returns for one
//! memory, bit for bit.

use fastrand::Rng;
use gstnmsfilter::device::{Device, DeviceBuffer, PinnedBuffer, Ready, Stream};
use gstnmsfilter::engine::{Cuda, Engine, Outcome, Reference};
use gstnmsfilter::tensor::{DeviceSlice, ElementType, Shape, Storage, TensorView};

use crate::support::engines::{self, bits};
use crate::support::scene::Scene;

/// How the images of a tensor are arranged in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrangement {
    /// One behind the other.
    Contiguous,
    /// With gaps of the same size.
    InStride,
    /// In random order, with gaps of random sizes.
    Scattered,
}

/// A tensor whose images are parts of one block of memory, with other bytes between them.
pub struct Arranged<'a> {
    id: &'a str,
    element: ElementType,
    shape: Shape,
    /// Aligned for every element type.
    block: Vec<u64>,
    /// Where each image begins, in bytes.
    offsets: Vec<usize>,
    /// The bytes of an image.
    len: usize,
}

impl<'a> Arranged<'a> {
    /// The images of a contiguous tensor in host memory, which its first dimension counts.
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
        // As numbers, the bytes of the gaps are NaN.
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

    /// The images in host memory.
    fn on_host(&self) -> Vec<Storage<'_>> {
        let all: &[u8] = bytemuck::cast_slice(&self.block);
        self.offsets.iter().map(|&offset| Storage::Host(&all[offset..offset + self.len])).collect()
    }

    /// The images in device memory.
    fn on_device<'s>(&self, copy: &'s DeviceBuffer) -> Vec<Storage<'s>> {
        let slice = |&offset: &usize| {
            // SAFETY: the copy has the bytes of the block, is complete, and outlives the result.
            unsafe { DeviceSlice::new(copy.address() + offset as u64, self.len, Ready::Now) }
        };
        self.offsets.iter().map(|offset| Storage::Device(slice(offset))).collect()
    }

    /// Whether the distance of consecutive images is constant and not negative.
    fn is_in_stride(&self) -> bool {
        let distances: Vec<isize> =
            self.offsets.windows(2).map(|pair| pair[1] as isize - pair[0] as isize).collect();
        distances.iter().all(|&distance| distance == distances[0] && distance >= 0)
    }

    /// The bytes of a table of its images, if it needs one.
    fn table_bytes(&self) -> u64 {
        if self.is_in_stride() { 0 } else { 8 * self.offsets.len() as u64 }
    }
}

/// A copy of `bytes` in device memory.
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
    outcome.images().map(|image| bits(&image)).collect()
}

/// A batch with its result.
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
        let expected =
            all_bits(&Reference::default().run(&tensors, &layout, &joined.params).unwrap());
        Self { joined, images, expected }
    }

    /// An arrangement for each tensor; the second can be contiguous in one memory.
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
            // Boxes and scores in different kinds of memory.
            views[whole] = tensors[whole].clone();
        }
        let params = &case.joined.params;
        let what = || format!("seed {seed}, {} images: {:?}", case.images, case.joined);
        let found = reference.run(&views, &layout, params).unwrap();
        assert_eq!(all_bits(&found), case.expected, "reference, {}", what());
        let found = fast.run(&views, &layout, params).unwrap();
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
        // A new engine has neither thresholds nor a table on the GPU.
        let mut cuda = Cuda::new(Some(0)).unwrap();
        let params = &case.joined.params;
        let thresholds = 4 * params.thresholds.per_class.len() as u64;
        for uploaded in [table + thresholds, 0, 0] {
            let outcome = cuda.run(&views, &layout, params).unwrap();
            let what = || format!("seed {seed}, {} images: {:?}", case.images, case.joined);
            assert_eq!(all_bits(&outcome), case.expected, "{}", what());
            assert_eq!(outcome.device().bytes_uploaded, uploaded, "{}", what());
        }
        tables += u64::from(table > 0);
        strides += u64::from(table == 0 && case.images > 1);
    }
    println!("{batches} batches: {tables} with a table, {strides} in stride");
    assert!(tables > batches / 5 && strides > batches / 10, "{tables} tables, {strides} strides");
}
