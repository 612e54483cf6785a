// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes small ONNX models byte by byte.
//!
//! In: a graph's inputs, outputs, nodes and initializers. Out: the bytes of an `.onnx` file.
//! [`OnnxModel`] is the builder, and the functions below it make models for tests.
//!
//! An `.onnx` file is a `ModelProto` in the wire format of Protocol Buffers. This module writes the
//! following messages of ONNX's `onnx.proto3`, given here with the numbers of their fields:
//!
//! | message | fields |
//! | --- | --- |
//! | `ModelProto` | `ir_version` 1, `producer_name` 2, `graph` 7, `opset_import` 8, `metadata_props` 14 |
//! | `OperatorSetIdProto` | `domain` 1 (absent for the operators of ONNX itself), `version` 2 |
//! | `StringStringEntryProto` | `key` 1, `value` 2 |
//! | `GraphProto` | `node` 1, `name` 2, `initializer` 5, `input` 11, `output` 12 |
//! | `NodeProto` | `input` 1, `output` 2, `name` 3, `op_type` 4, `attribute` 5, `domain` 7 |
//! | `AttributeProto` | `name` 1, `f` 2, `i` 3, `ints` 8, `type` 20 (`FLOAT` 1, `INT` 2, `INTS` 7) |
//! | `ValueInfoProto` | `name` 1, `type` 2 |
//! | `TypeProto` | `tensor_type` 1, of `elem_type` 1 and `shape` 2 |
//! | `TensorShapeProto` | `dim` 1, of `dim_value` 1 or `dim_param` 2 |
//! | `TensorProto` | `dims` 1, `data_type` 2, `name` 8, `raw_data` 9 |
//!
//! The element types are `TensorProto.DataType`: `FLOAT` 1, `UINT8` 2, `INT8` 3, `INT32` 6, `INT64` 7,
//! `FLOAT16` 10, `DOUBLE` 11.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::Path;

/// IR version of the models, introduced by ONNX 1.10. ONNX Runtime 1.9 and later read it.
const IR_VERSION: u64 = 8;
/// Operator set version, introduced by ONNX 1.8.
const OPSET: u64 = 13;

/// Element type of a tensor, with its number in `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F32 = 1,
    U8 = 2,
    I8 = 3,
    I32 = 6,
    I64 = 7,
    F16 = 10,
    F64 = 11,
}

/// A dimension of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A number. ONNX Runtime takes a negative number for an unknown dimension.
    Size(i64),
    /// A name, such as `height`. The length is known only when the model runs.
    Symbol(String),
    /// Neither a number nor a name.
    Unknown,
}

/// The dimensions of an input or output. They can be made from an array of numbers, an array of
/// [`Dim`], or a text such as `"1,3,height,width"`, in which `?` is a dimension without a name.
/// `Dims::unranked()` has no shape at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims(Option<Vec<Dim>>);

impl Dims {
    /// Makes dimensions without a shape, so that even their number is unknown.
    pub fn unranked() -> Self {
        Self(None)
    }
}

impl<const N: usize> From<[i64; N]> for Dims {
    fn from(sizes: [i64; N]) -> Self {
        Self(Some(sizes.map(Dim::Size).into()))
    }
}

impl From<&[i64]> for Dims {
    fn from(sizes: &[i64]) -> Self {
        Self(Some(sizes.iter().map(|&size| Dim::Size(size)).collect()))
    }
}

impl<const N: usize> From<[Dim; N]> for Dims {
    fn from(dims: [Dim; N]) -> Self {
        Self(Some(dims.into()))
    }
}

impl From<&str> for Dims {
    fn from(text: &str) -> Self {
        let dim = |part: &str| match part.trim() {
            "?" => Dim::Unknown,
            part => part.parse().map_or_else(|_| Dim::Symbol(part.into()), Dim::Size),
        };
        Self(Some(text.split(',').map(dim).collect()))
    }
}

/// A node of the graph: an operator with the names of its inputs and outputs.
#[derive(Clone, Debug)]
pub struct Node(Message);

impl Node {
    /// Makes a node without attributes. It is named like its first output.
    pub fn new(operator: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        let mut node = Message::default();
        for input in inputs {
            node.text(1, input);
        }
        for output in outputs {
            node.text(2, output);
        }
        node.text(3, outputs.first().unwrap_or(&""));
        node.text(4, operator);
        Self(node)
    }

    /// Sets the domain of the operator.
    pub fn domain(mut self, domain: &str) -> Self {
        self.0.text(7, domain);
        self
    }

    /// Adds an attribute of type `INT`.
    pub fn int(self, name: &str, value: i64) -> Self {
        self.attribute(name, 2, |attribute| attribute.signed(3, value))
    }

    /// Adds an attribute of type `INTS`.
    pub fn ints(self, name: &str, values: &[i64]) -> Self {
        self.attribute(name, 7, |attribute| attribute.packed(8, values))
    }

    /// Adds an attribute of type `FLOAT`.
    pub fn float(self, name: &str, value: f32) -> Self {
        self.attribute(name, 1, |attribute| attribute.float(2, value))
    }

    fn attribute(mut self, name: &str, kind: u64, value: impl FnOnce(&mut Message)) -> Self {
        let mut attribute = Message::default();
        attribute.text(1, name);
        value(&mut attribute);
        attribute.unsigned(20, kind);
        self.0.message(5, &attribute);
        self
    }
}

/// A tensor with values: an initializer of the graph.
#[derive(Clone, Debug)]
pub struct Tensor {
    element: Element,
    dims: Vec<i64>,
    data: Data,
}

/// The location of a tensor's elements.
#[derive(Clone, Debug)]
enum Data {
    Here(Vec<u8>),
    /// In a file at this path, relative to the model's folder.
    InFile(String),
}

impl Tensor {
    /// Makes a tensor of f32.
    ///
    /// None of the constructors compares the number of elements with `dims`, so that contradictory
    /// models can be written.
    pub fn f32(dims: &[i64], values: &[f32]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { element: Element::F32, dims: dims.into(), data: Data::Here(data) }
    }

    /// Makes a tensor of f16 from its bits (`half::f16::to_bits`).
    pub fn f16(dims: &[i64], bits: &[u16]) -> Self {
        let data = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        Self { element: Element::F16, dims: dims.into(), data: Data::Here(data) }
    }

    /// Makes a tensor of i64.
    pub fn i64(dims: &[i64], values: &[i64]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { element: Element::I64, dims: dims.into(), data: Data::Here(data) }
    }

    /// Makes a tensor of f32 whose elements are in a file in the model's folder.
    pub fn f32_in_file(dims: &[i64], file: &str) -> Self {
        Self { element: Element::F32, dims: dims.into(), data: Data::InFile(file.to_owned()) }
    }
}

/// A model under construction.
#[derive(Clone, Debug)]
pub struct OnnxModel {
    graph: Message,
    opset: u64,
    domains: Vec<String>,
    ir_version: u64,
    metadata: Vec<Message>,
}

impl Default for OnnxModel {
    fn default() -> Self {
        Self::new()
    }
}

impl OnnxModel {
    /// Starts with a graph without inputs, outputs and nodes.
    pub fn new() -> Self {
        let mut graph = Message::default();
        graph.text(2, "test");
        Self {
            graph,
            opset: OPSET,
            ir_version: IR_VERSION,
            domains: Vec::new(),
            metadata: Vec::new(),
        }
    }

    /// Adds an input.
    pub fn input(mut self, name: &str, element: Element, dims: impl Into<Dims>) -> Self {
        self.graph.message(11, &value_info(name, element, dims.into()));
        self
    }

    /// Adds an output. A node must have an output with this name.
    pub fn output(mut self, name: &str, element: Element, dims: impl Into<Dims>) -> Self {
        self.graph.message(12, &value_info(name, element, dims.into()));
        self
    }

    /// Adds a node. It must follow the nodes whose outputs it reads.
    pub fn node(mut self, node: Node) -> Self {
        self.graph.message(1, &node.0);
        self
    }

    /// Adds a tensor with values, which nodes read by this name.
    pub fn initializer(mut self, name: &str, tensor: &Tensor) -> Self {
        let mut initializer = Message::default();
        initializer.packed(1, &tensor.dims);
        initializer.unsigned(2, tensor.element as u64);
        initializer.text(8, name);
        match &tensor.data {
            Data::Here(data) => initializer.bytes(9, data),
            Data::InFile(file) => {
                let mut location = Message::default();
                location.text(1, "location");
                location.text(2, file);
                initializer.message(13, &location);
                initializer.unsigned(14, 1);
            }
        }
        self.graph.message(5, &initializer);
        self
    }

    /// Adds an entry to the model's metadata.
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        let mut entry = Message::default();
        entry.text(1, key);
        entry.text(2, value);
        self.metadata.push(entry);
        self
    }

    /// Replaces the operator set version, which is 13 by default. ONNX Runtime returns an error for
    /// versions that are later than the latest one that it knows.
    pub fn opset(mut self, version: u64) -> Self {
        self.opset = version;
        self
    }

    /// Adds a domain of operators beside ONNX's, with version 1.
    pub fn domain(mut self, domain: &str) -> Self {
        self.domains.push(domain.to_owned());
        self
    }

    /// Replaces the version of the file format.
    pub fn ir_version(mut self, version: u64) -> Self {
        self.ir_version = version;
        self
    }

    /// Returns the contents of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut opset = Message::default();
        opset.unsigned(2, self.opset);
        let mut model = Message::default();
        model.unsigned(1, self.ir_version);
        model.text(2, "nmsfilter tests");
        model.message(7, &self.graph);
        model.message(8, &opset);
        for domain in &self.domains {
            let mut opset = Message::default();
            opset.text(1, domain);
            opset.unsigned(2, 1);
            model.message(8, &opset);
        }
        for entry in &self.metadata {
            model.message(14, entry);
        }
        model.0
    }

    /// Writes the model to a file.
    pub fn write(&self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        std::fs::write(path, self.to_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Returns a model whose `output` is its `input`. It shows a test what the model receives.
pub fn identity(dims: impl Into<Dims>, element: Element) -> OnnxModel {
    let dims = dims.into();
    OnnxModel::new()
        .input("input", element, dims.clone())
        .node(Node::new("Identity", &["input"], &["output"]))
        .output("output", element, dims)
}

/// Returns a model whose output `name` always has these values: [`constants`] with one output.
pub fn constant(input: impl Into<Dims>, name: &str, dims: &[i64], values: &[f32]) -> OnnxModel {
    constants(input, &[(name, dims, values)])
}

/// Returns a model with these outputs (name, dimensions, values), which do not depend on its
/// `input`. All tensors are f32.
///
/// The model does use its input: the outputs are `values + 0 * sum(input)`. The bits therefore
/// equal the bits of `values`, with two exceptions: minus zero becomes zero, and all values become
/// NaN if the sum of the input is not finite.
pub fn constants(input: impl Into<Dims>, outputs: &[(&str, &[i64], &[f32])]) -> OnnxModel {
    let mut model = OnnxModel::new()
        .input("input", Element::F32, input)
        // If the input `axes` is missing, ReduceSum reduces all axes.
        .node(Node::new("ReduceSum", &["input"], &["sum"]).int("keepdims", 0))
        .initializer("zero", &Tensor::f32(&[], &[0.0]))
        .node(Node::new("Mul", &["sum", "zero"], &["nothing"]));
    for &(name, dims, values) in outputs {
        let stored = format!("values of {name}");
        model = model
            .initializer(&stored, &Tensor::f32(dims, values))
            .node(Node::new("Add", &[&stored, "nothing"], &[name]))
            .output(name, Element::F32, dims);
    }
    model
}

/// Returns a model whose `output` (f16) is its `input` (f32), rounded.
pub fn identity_f16_output(dims: impl Into<Dims>) -> OnnxModel {
    cast(dims.into(), Element::F16)
}

/// Returns a model whose `output` (f64) is its `input` (f32).
pub fn f64_output(dims: impl Into<Dims>) -> OnnxModel {
    cast(dims.into(), Element::F64)
}

fn cast(dims: Dims, to: Element) -> OnnxModel {
    OnnxModel::new()
        .input("input", Element::F32, dims.clone())
        .node(Node::new("Cast", &["input"], &["output"]).int("to", to as i64))
        .output("output", to, dims)
}

/// Returns a model with two outputs: `same` is its `input` (f32), and `negative` its negated input.
pub fn two_outputs(dims: impl Into<Dims>) -> OnnxModel {
    let dims = dims.into();
    OnnxModel::new()
        .input("input", Element::F32, dims.clone())
        .node(Node::new("Identity", &["input"], &["same"]))
        .node(Node::new("Neg", &["input"], &["negative"]))
        .output("same", Element::F32, dims.clone())
        .output("negative", Element::F32, dims)
}

/// Returns a model whose `output` is the sum of its inputs `left` and `right` (f32).
pub fn two_inputs(dims: impl Into<Dims>) -> OnnxModel {
    let dims = dims.into();
    OnnxModel::new()
        .input("left", Element::F32, dims.clone())
        .input("right", Element::F32, dims.clone())
        .node(Node::new("Add", &["left", "right"], &["output"]))
        .output("output", Element::F32, dims)
}

/// Returns a model whose `output` (f32) has a row for each element of its `input` (f32) that is not
/// zero. The row has the element's index in each dimension. The number of rows depends on the
/// values, so their dimension is the symbol `found`.
pub fn varying_output(dims: impl Into<Dims>) -> OnnxModel {
    let dims = dims.into();
    let rank = dims.0.as_ref().map_or(Dim::Unknown, |dims| Dim::Size(dims.len() as i64));
    OnnxModel::new()
        .input("input", Element::F32, dims)
        .node(Node::new("NonZero", &["input"], &["columns"]))
        .node(Node::new("Transpose", &["columns"], &["rows"]).ints("perm", &[1, 0]))
        .node(Node::new("Cast", &["rows"], &["output"]).int("to", Element::F32 as i64))
        .output("output", Element::F32, [Dim::Symbol("found".into()), rank])
}

/// Returns a model that detects pixels whose first channel is greater than `threshold`, among the first `boxes` pixels:
/// for each it has a row of the constant outputs (name, element type, values of all rows). The outputs have the dimensions
/// `before` in front of the number of rows, which depends on the picture.
pub fn detections(
    input: impl Into<Dims>,
    (boxes, threshold): (usize, f32),
    before: &[i64],
    outputs: &[(&str, Element, Vec<f32>)],
) -> OnnxModel {
    let axis = before.len();
    let mut model = OnnxModel::new()
        .input("input", Element::F32, input)
        .initializer("from", &Tensor::i64(&[4], &[0; 4]))
        .initializer("to", &Tensor::i64(&[4], &[1, 1, 1, boxes as i64]))
        .node(Node::new("Slice", &["input", "from", "to"], &["pixels"]))
        .initializer("flat", &Tensor::i64(&[1], &[-1]))
        .node(Node::new("Reshape", &["pixels", "flat"], &["row"]))
        .initializer("threshold", &Tensor::f32(&[1], &[threshold]))
        .node(Node::new("Greater", &["row", "threshold"], &["is object"]))
        .node(Node::new("NonZero", &["is object"], &["found"]))
        .node(Node::new("Reshape", &["found", "flat"], &["chosen"]));
    for (name, element, values) in outputs {
        let columns = values.len() / boxes / before.iter().product::<i64>() as usize;
        let of_row = if columns == 1 { vec![] } else { vec![columns as i64] };
        let shape = |rows: i64| [before, &[rows], &of_row].concat();
        let [all, some] = ["all", "some"].map(|word| format!("{word} of {name}"));
        let symbols: Vec<String> = shape(-1).iter().map(ToString::to_string).collect();
        model = model
            .initializer(&all, &Tensor::f32(&shape(boxes as i64), values))
            .node(Node::new("Gather", &[&all, "chosen"], &[&some]).int("axis", axis as i64))
            .node(Node::new("Cast", &[&some], &[name]).int("to", *element as i64))
            .output(name, *element, &*symbols.join(",").replace("-1", "rows"));
    }
    model
}

/// Returns a model that multiplies boxes (fractions of a picture) by the numbers of its input `name`: width and height for
/// each picture. The outputs are `labels`, `boxes` and `scores`, with `boxes.len()` rows.
pub fn scaled_boxes(
    images: impl Into<Dims>,
    (name, element, dims): (&str, Element, impl Into<Dims>),
    boxes: &[([f32; 4], i64, f32)],
) -> OnnxModel {
    let rows = boxes.len() as i64;
    let corners: Vec<f32> = boxes.iter().flat_map(|(corners, ..)| *corners).collect();
    let labels: Vec<i64> = boxes.iter().map(|(_, label, _)| *label).collect();
    let scores: Vec<f32> = boxes.iter().map(|(.., score)| *score).collect();
    OnnxModel::new()
        .input("images", Element::F32, images)
        .input(name, element, dims)
        // The outputs have a row for each picture.
        .node(Node::new("ReduceSum", &["images", "but the first"], &["sum"]).int("keepdims", 0))
        .initializer("but the first", &Tensor::i64(&[3], &[1, 2, 3]))
        .initializer("zero", &Tensor::f32(&[], &[0.0]))
        .node(Node::new("Mul", &["sum", "zero"], &["nothing"]))
        .initializer("last", &Tensor::i64(&[1], &[1]))
        .node(Node::new("Unsqueeze", &["nothing", "last"], &["column"]))
        .node(Node::new("Cast", &[name], &["numbers"]).int("to", Element::F32 as i64))
        .node(Node::new("Concat", &["numbers", "numbers"], &["sizes"]).int("axis", 1))
        .node(Node::new("Unsqueeze", &["sizes", "last"], &["sizes of rows"]))
        .initializer("fractions", &Tensor::f32(&[1, rows, 4], &corners))
        .node(Node::new("Mul", &["fractions", "sizes of rows"], &["boxes"]))
        .initializer("all scores", &Tensor::f32(&[1, rows], &scores))
        .node(Node::new("Add", &["all scores", "column"], &["scores"]))
        .initializer("all labels", &Tensor::i64(&[1, rows], &labels))
        .node(
            Node::new("Cast", &["column"], &["column of integers"]).int("to", Element::I64 as i64),
        )
        .node(Node::new("Add", &["all labels", "column of integers"], &["labels"]))
        .output("labels", Element::I64, format!("N,{rows}").as_str())
        .output("boxes", Element::F32, format!("N,{rows},4").as_str())
        .output("scores", Element::F32, format!("N,{rows}").as_str())
}

/// Adds outputs of type f32 to a model: tensors that its nodes compute. Protocol Buffers merges a message that occurs
/// twice, so the file gets a second graph with the outputs only.
pub fn with_outputs(model: &[u8], names: &[String]) -> Vec<u8> {
    let mut graph = Message::default();
    for name in names {
        graph.message(12, &value_info(name, Element::F32, Dims::unranked()));
    }
    let mut bytes = Message(model.to_vec());
    bytes.message(7, &graph);
    bytes.0
}

/// Writes a `ValueInfoProto`.
fn value_info(name: &str, element: Element, dims: Dims) -> Message {
    let mut tensor = Message::default();
    tensor.unsigned(1, element as u64);
    if let Some(dims) = dims.0 {
        let mut shape = Message::default();
        for dim in dims {
            let mut message = Message::default();
            match dim {
                Dim::Size(size) => message.signed(1, size),
                Dim::Symbol(symbol) => message.text(2, &symbol),
                Dim::Unknown => {}
            }
            shape.message(1, &message);
        }
        tensor.message(2, &shape);
    }
    let mut kind = Message::default();
    kind.message(1, &tensor);
    let mut value = Message::default();
    value.text(1, name);
    value.message(2, &kind);
    value
}

/// A message in the wire format of Protocol Buffers: a sequence of fields, each a tag and a value.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    /// Wire types, which are in the lower three bits of a tag.
    const VARINT: u64 = 0;
    const LENGTH_DELIMITED: u64 = 2;
    const FIXED32: u64 = 5;

    fn tag(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    /// Writes seven bits per byte, the lowest first. The eighth bit is set in all bytes except the
    /// last.
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn unsigned(&mut self, field: u64, value: u64) {
        self.tag(field, Self::VARINT);
        self.varint(value);
    }

    /// Writes a field of type int64, in two's complement.
    fn signed(&mut self, field: u64, value: i64) {
        self.unsigned(field, value as u64);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.tag(field, Self::FIXED32);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.tag(field, Self::LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn message(&mut self, field: u64, value: &Message) {
        self.bytes(field, &value.0);
    }

    /// Writes a repeated field of type int64.
    fn packed(&mut self, field: u64, values: &[i64]) {
        let mut packed = Message::default();
        for &value in values {
            packed.varint(value as u64);
        }
        self.message(field, &packed);
    }
}
