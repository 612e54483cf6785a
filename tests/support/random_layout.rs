// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random layouts of every kind, with tensors of all element types that fit them.
//!
//! The numbers are chosen so that some of the anchors become candidates and boxes overlap. Some
//! numbers are not finite.

use std::sync::Arc;

use arrayvec::ArrayVec;
use fastrand::Rng;
use half::f16;
use nmsfilter_core::decoder::layout::{
    Activation, Axes, Background, BoxFormat, BoxRule, BoxTransform, Column, ColumnKind,
    Combination, Field, Grid, Group, Layout, MAX_COLUMNS, Prototypes, Reference, ScoreRule,
};
use nmsfilter_core::tensor::{ElementType, Quantization, Shape, Storage, TensorView};

/// An engine accepts no more tensors.
const MOST_TENSORS: usize = 16;

/// A layout and its tensors.
pub struct RandomLayout {
    pub layout: Layout,
    pub tensors: Vec<StoredTensor>,
}

/// A tensor `[images, elements per image]` in host memory.
pub struct StoredTensor {
    pub id: String,
    pub element: ElementType,
    pub quantization: Option<Quantization>,
    pub images: usize,
    /// Number of elements per image.
    pub elements: usize,
    /// Elements of all images, in memory that is aligned for all types.
    words: Vec<u64>,
}

/// The range of the numbers in a field.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Probability,
    Logit,
    Class,
    Count,
    /// From the first number to the second.
    Range(f32, f32),
}

/// A field of one group that needs numbers.
struct NewField {
    kind: Kind,
    components: usize,
    anchors: usize,
    /// If true, all images have equal elements, as priors do.
    is_shared: bool,
}

impl StoredTensor {
    fn bytes(&self) -> &[u8] {
        let size = self.element.size().unwrap();
        &bytemuck::cast_slice(&self.words)[..self.images * self.elements * size]
    }

    /// Returns the tensor as one allocation.
    pub fn view(&self) -> TensorView<'_> {
        let shape = Shape::new(&[self.images, self.elements]).unwrap();
        TensorView::new(&self.id, self.element, shape, Storage::Host(self.bytes()))
            .with_quantization(self.quantization)
    }

    /// Returns each image as a separate allocation.
    pub fn image_storages(&self) -> Vec<Storage<'_>> {
        let bytes = self.elements * self.element.size().unwrap();
        (0..self.images)
            .map(|image| Storage::Host(&self.bytes()[image * bytes..][..bytes]))
            .collect()
    }
}

impl RandomLayout {
    /// Generates a layout of upright boxes.
    pub fn new(rng: &mut Rng) -> Self {
        let images = *rng.choice(&[1, 1, 1, 2, 3]).unwrap();
        Self::of_images(rng, images, false)
    }

    /// Generates a layout whose boxes have angles.
    pub fn oriented(rng: &mut Rng) -> Self {
        let images = *rng.choice(&[1, 1, 1, 2, 3]).unwrap();
        Self::of_images(rng, images, true)
    }

    /// Generates a layout of upright boxes with columns for the methods that read one.
    pub fn with_densities_and_embeddings(rng: &mut Rng) -> Self {
        loop {
            let mut random = Self::new(rng);
            let has_room = random.layout.columns.len() <= MAX_COLUMNS - 2
                && random.tensors.len() + 2 * random.layout.groups.len() <= MOST_TENSORS;
            if has_room {
                random.add_column(rng, ColumnKind::Density, 1, Kind::Range(-0.1, 1.1));
                let components = *rng.choice(&[1, 2, 3, 32]).unwrap();
                random.add_column(rng, ColumnKind::Embedding, components, Kind::Range(0.0, 1.0));
                return random;
            }
        }
    }

    /// Adds a column, before or after the others, in a tensor for each group.
    fn add_column(&mut self, rng: &mut Rng, kind: ColumnKind, components: usize, numbers: Kind) {
        let index = rng.usize(0..=self.layout.columns.len());
        self.layout.columns.insert(index, Column { name: kind.name(), components, kind });
        if let Some(prototypes) = &mut self.layout.prototypes {
            prototypes.column += usize::from(prototypes.column >= index);
        }
        for group in 0..self.layout.groups.len() {
            let anchors = self.layout.groups[group].anchors;
            let wanted = NewField { kind: numbers, components, anchors, is_shared: false };
            let field = self.add_tensor(rng, &[wanted])[0];
            self.layout.groups[group].columns.insert(index, field);
        }
    }

    /// A layout of this number of images.
    pub fn of_images(rng: &mut Rng, images: usize, is_oriented: bool) -> Self {
        loop {
            let random = Self::of_any_size(rng, images, is_oriented);
            if random.tensors.len() <= MOST_TENSORS {
                return random;
            }
        }
    }

    /// A layout that can have more tensors than an engine accepts.
    fn of_any_size(rng: &mut Rng, images: usize, is_oriented: bool) -> Self {
        let has_class = rng.u8(0..4) == 0;
        let rule = ScoreRule {
            components: if has_class {
                1
            } else {
                *rng.choice(&[1, 1, 2, 3, 7, 8, 20, 91]).unwrap()
            },
            first_class: if rng.u8(0..5) == 0 { 1 } else { 0 },
            background: match rng.u8(0..4) {
                0 => Background::First,
                1 => Background::Last,
                _ => Background::None,
            },
            activation: *rng
                .choice(&[Activation::None, Activation::Sigmoid, Activation::Softmax])
                .unwrap(),
            combination: *rng.choice(&[Combination::Product, Combination::SquareRoot]).unwrap(),
            peaks: false,
        };
        let classes = if has_class {
            *rng.choice(&[3, 80, 65_536]).unwrap()
        } else {
            rule.first_class as usize + rule.components + rng.usize(0..2)
        };
        let has_objectness = rng.u8(0..3) == 0;
        let mut columns: Vec<Column> = match rng.u8(0..3) {
            0 => (0..rng.usize(1..=2))
                .map(|_| Column::of_numbers("column", rng.usize(1..40)))
                .collect(),
            _ => Vec::new(),
        };
        let has_masks = rng.u8(0..4) == 0;
        if has_masks {
            let channels = *rng.choice(&[1, 3, 8, 32, 33, 70]).unwrap();
            let kind = ColumnKind::MaskCoefficients;
            let column = Column { name: "coefficients", components: channels, kind };
            columns.insert(rng.usize(0..=columns.len()), column);
        }
        let mut boxes = any_box_rule(rng);
        if is_oriented {
            boxes.format = BoxFormat::Center;
            boxes.angle_factor = *rng.choice(&[1.0, 1.0, -1.0, 0.25]).unwrap();
        }
        let reference = rng.u8(0..4);
        let group_count = rng.usize(1..=2);
        let anchors: Vec<usize> =
            (0..group_count).map(|_| *rng.choice(&[0, 1, 7, 40, 129]).unwrap()).collect();

        let mut scene = Self { layout: empty(images, classes, rule, boxes), tensors: Vec::new() };
        let score_kind = match rule.activation {
            Activation::None => Kind::Probability,
            Activation::Sigmoid | Activation::Softmax => Kind::Logit,
        };
        let number = box_kind(&boxes, reference != 0);
        let mut priors = Vec::new();
        for &anchors in &anchors {
            let field = |kind, components| NewField { kind, components, anchors, is_shared: false };
            let mut wanted =
                vec![field(number, boxes.components()), field(score_kind, rule.columns())];
            if has_objectness {
                wanted.push(field(score_kind, 1));
            }
            if has_class {
                wanted.push(field(Kind::Class, 1));
            }
            if is_oriented {
                wanted.push(field(Kind::Range(-4.0, 4.0), 1));
            }
            for column in &columns {
                wanted.push(field(Kind::Range(-9.0, 9.0), column.components));
            }
            let mut fields = scene.add(rng, &wanted).into_iter();
            let mut next = || fields.next().unwrap();
            let (boxes, scores) = (next(), next());
            let objectness = has_objectness.then(&mut next);
            let class = has_class.then(&mut next);
            let angle = is_oriented.then(&mut next);
            let column_fields = columns.iter().map(|_| next()).collect();
            let reference = match reference {
                0 => Reference::None,
                1 => Reference::Grid(any_grid(rng)),
                2 => {
                    let kind = Kind::Range(10.0, 90.0);
                    let prior = NewField { kind, components: 4, anchors, is_shared: true };
                    Reference::Priors(scene.add(rng, &[prior])[0])
                }
                _ => {
                    let first = priors.len();
                    priors.extend((0..anchors).map(|_| [0; 4].map(|_| 10.0 + rng.f32() * 80.0)));
                    Reference::Table(first)
                }
            };
            scene.layout.groups.push(Group {
                sizes: None,
                anchors,
                boxes,
                angle,
                scores,
                objectness,
                class,
                reference,
                columns: column_fields,
            });
        }
        if has_masks {
            scene.add_prototypes(rng, &columns);
        }
        scene.layout.columns = columns;
        scene.layout.priors = (!priors.is_empty() || reference == 3).then(|| Arc::from(priors));
        if rng.u8(0..4) == 0 {
            let count = NewField { kind: Kind::Count, components: 1, anchors: 1, is_shared: false };
            scene.layout.count = Some(scene.add(rng, &[count])[0]);
        }
        scene
    }

    /// Adds prototypes for the column that has mask coefficients.
    fn add_prototypes(&mut self, rng: &mut Rng, columns: &[Column]) {
        let is_coefficients = |column: &Column| column.kind == ColumnKind::MaskCoefficients;
        let column = columns.iter().position(is_coefficients).unwrap();
        let [width, height] = [0, 1].map(|_| *rng.choice(&[1, 2, 7, 20, 33]).unwrap());
        let wanted = NewField {
            kind: Kind::Range(-3.0, 3.0),
            components: columns[column].components,
            anchors: width * height,
            is_shared: false,
        };
        let field = self.add_tensor(rng, &[wanted])[0];
        self.layout.prototypes = Some(Prototypes { field, width, height, column });
    }

    /// Returns the tensors, each as one allocation.
    pub fn views(&self) -> Vec<TensorView<'_>> {
        self.tensors.iter().map(StoredTensor::view).collect()
    }

    /// Returns true if all images have equal elements in the tensor with this index.
    pub fn is_shared(&self, tensor: usize) -> bool {
        self.layout.groups.iter().any(
            |group| matches!(group.reference, Reference::Priors(priors) if priors.tensor == tensor),
        )
    }

    /// Adds tensors for fields that describe common anchors: either one tensor for all of them,
    /// in which anchors are rows or columns, or one tensor per field.
    fn add(&mut self, rng: &mut Rng, wanted: &[NewField]) -> Vec<Field> {
        let together = rng.bool() && wanted.len() > 1;
        if together {
            self.add_tensor(rng, wanted)
        } else {
            wanted
                .iter()
                .flat_map(|field| self.add_tensor(rng, std::slice::from_ref(field)))
                .collect()
        }
    }

    fn add_tensor(&mut self, rng: &mut Rng, wanted: &[NewField]) -> Vec<Field> {
        let images = self.layout.images;
        let (anchors, is_shared) = (wanted[0].anchors, wanted[0].is_shared);
        let width: usize = wanted.iter().map(|field| field.components).sum();
        // Some tensors have an unused element per anchor or per component.
        let (gap, by_anchor) = (usize::from(rng.u8(0..4) == 0), rng.bool());
        let (anchor_stride, component_stride) =
            if by_anchor { (width + gap, 1) } else { (1, anchors + gap) };
        let elements = if by_anchor { anchors * (width + gap) } else { width * (anchors + gap) };
        let elements = elements.max(1);
        let is_integer = wanted.iter().all(|f| matches!(f.kind, Kind::Class | Kind::Count));
        let element = if is_integer {
            *rng.choice(&[ElementType::I32, ElementType::I64, ElementType::F32]).unwrap()
        } else {
            *rng.choice(&[
                ElementType::F32,
                ElementType::F32,
                ElementType::F16,
                ElementType::I8,
                ElementType::U8,
            ])
            .unwrap()
        };
        let (low, high) = wanted.iter().fold((0.0f32, 1.0f32), |(low, high), field| {
            let (l, h) = field.kind.range();
            (low.min(l), high.max(h))
        });
        let quantization = Quantization::new((high - low) / 255.0, {
            let zero = (-low / ((high - low) / 255.0)).round() as i32;
            if element == ElementType::I8 { zero - 128 } else { zero }
        })
        .filter(|_| matches!(element, ElementType::I8 | ElementType::U8));

        let mut numbers = vec![0.0f32; images * elements];
        let mut fields = Vec::new();
        let mut first = 0;
        for field in wanted {
            let placed = Field {
                tensor: self.tensors.len(),
                offset: first * component_stride,
                image_stride: if is_shared { 0 } else { elements },
                anchor_stride,
                component_stride,
            };
            for image in 0..images {
                for anchor in 0..anchors {
                    for component in 0..field.components {
                        let at = image * elements + placed.index(anchor, component);
                        numbers[at] = field.kind.number(rng);
                    }
                }
            }
            fields.push(placed);
            first += field.components;
        }
        // Every image has its own elements, even if all images are equal.
        if is_shared && images > 1 {
            let (one, others) = numbers.split_at_mut(elements);
            others.chunks_mut(elements).for_each(|image| image.copy_from_slice(one));
        }
        self.tensors.push(StoredTensor {
            id: format!("tensor-{}", self.tensors.len()),
            element,
            quantization,
            images,
            elements,
            words: stored(&numbers, element, quantization),
        });
        fields
    }
}

impl Kind {
    fn range(self) -> (f32, f32) {
        match self {
            Self::Probability => (0.0, 1.0),
            Self::Logit => (-6.0, 6.0),
            Self::Class => (0.0, 3.0),
            Self::Count => (0.0, 200.0),
            Self::Range(low, high) => (low, high),
        }
    }

    fn number(self, rng: &mut Rng) -> f32 {
        match rng.u16(0..400) {
            0 => return f32::NAN,
            1 => return f32::INFINITY,
            2 => return f32::NEG_INFINITY,
            3 => return -0.0,
            _ => {}
        }
        let (low, high) = self.range();
        match self {
            // Many probabilities are low, as for background.
            Self::Probability => {
                if rng.bool() {
                    rng.f32() * 0.2
                } else {
                    rng.f32()
                }
            }
            Self::Class => f32::from(rng.u8(0..3)) + if rng.u8(0..20) == 0 { 0.5 } else { 0.0 },
            Self::Count => f32::from(rng.u8(0..200)),
            // Logits have steps, so that scores are sometimes equal.
            Self::Logit => (rng.f32() * 40.0).floor() * 0.3 - 6.0,
            Self::Range(..) => low + rng.f32() * (high - low),
        }
    }
}

fn empty(images: usize, classes: usize, score: ScoreRule, boxes: BoxRule) -> Layout {
    Layout {
        decoder: "random",
        images,
        classes,
        groups: ArrayVec::new(),
        score,
        boxes,
        count: None,
        columns: Vec::new(),
        pairs: None,
        image: None,
        prototypes: None,
        priors: None,
        normalized: false,
    }
}

fn any_box_rule(rng: &mut Rng) -> BoxRule {
    let format = *rng
        .choice(&[BoxFormat::Corners, BoxFormat::Center, BoxFormat::Square, BoxFormat::Distances])
        .unwrap();
    let transform = *rng
        .choice(&[
            BoxTransform::None,
            BoxTransform::None,
            BoxTransform::Exp,
            BoxTransform::Sigmoid,
            BoxTransform::SigmoidExp,
            BoxTransform::Expectation,
        ])
        .unwrap();
    let bins = if transform == BoxTransform::Expectation { rng.usize(1..=16) } else { 1 };
    let variances = *rng.choice(&[[1.0, 1.0], [0.1, 0.2], [0.5, 1.0]]).unwrap();
    let axes = if rng.u8(0..3) == 0 { Axes::Yx } else { Axes::Xy };
    BoxRule { format, axes, transform, bins, variances, angle_factor: 1.0 }
}

/// Returns the range of box numbers that are plausible for a rule.
fn box_kind(rule: &BoxRule, is_relative: bool) -> Kind {
    match (rule.transform, rule.format, is_relative) {
        (BoxTransform::Expectation, ..) => Kind::Range(-4.0, 4.0),
        (_, BoxFormat::Distances, true) => Kind::Range(-0.2, 3.0),
        (BoxTransform::None, _, false) => Kind::Range(1.0, 120.0),
        _ => Kind::Range(-1.0, 2.5),
    }
}

fn any_grid(rng: &mut Rng) -> Grid {
    let sizes: ArrayVec<[f32; 2], 6> = if rng.bool() {
        (0..rng.usize(1..=6)).map(|_| [0; 2].map(|_| 5.0 + rng.f32() * 60.0)).collect()
    } else {
        ArrayVec::new()
    };
    Grid {
        columns: rng.usize(1..9),
        per_cell: rng.usize(1..=4),
        by_cell: rng.bool(),
        stride: *rng.choice(&[[8.0, 8.0], [16.0, 16.0], [33.3, 7.5]]).unwrap(),
        offset: *rng.choice(&[0.0, 0.5, -0.25]).unwrap(),
        scale_xy: *rng.choice(&[1.0, 1.05, 1.2]).unwrap(),
        sizes,
    }
}

/// Converts `numbers` to elements, stored as 64-bit words.
fn stored(numbers: &[f32], element: ElementType, quantization: Option<Quantization>) -> Vec<u64> {
    let quantized = |&number: &f32| {
        let quantization = quantization.expect("the element type is quantized");
        (number / quantization.scale()).round() + quantization.zero_point() as f32
    };
    let bytes: Vec<u8> = match element {
        ElementType::F32 => bytemuck::cast_slice(numbers).to_vec(),
        ElementType::F16 => {
            numbers.iter().flat_map(|&n| f16::from_f32(n).to_bits().to_ne_bytes()).collect()
        }
        ElementType::I8 => numbers.iter().map(|n| quantized(n) as i8 as u8).collect(),
        ElementType::U8 => numbers.iter().map(|n| quantized(n) as u8).collect(),
        ElementType::I32 => numbers.iter().flat_map(|&n| (n as i32).to_ne_bytes()).collect(),
        ElementType::I64 => numbers.iter().flat_map(|&n| (n as i64).to_ne_bytes()).collect(),
        _ => unreachable!("the element type can be read"),
    };
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
    words
}
