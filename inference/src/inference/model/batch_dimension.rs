// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes the batch size of a model.
//!
//! In: the bytes of an ONNX file whose input has the dimensions `[1,...]`. Out: the model with an input of
//! `[batch,...]`. Exporters also write the batch size into constant shapes `[1,...]`, which `Reshape` nodes apply
//! to values that depend on the input; these constants are changed, too. The dimensions that the file states for
//! outputs and intermediate values are removed, so that ONNX Runtime computes them. Other nodes may still be valid
//! for a batch of 1 only, so the caller must check the results.
//!
//! Only these fields are read ([onnx.proto](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto)):
//!
//! ```text
//! ModelProto: graph = 7
//! GraphProto: node = 1 (NodeProto), initializer = 5 (TensorProto), input = 11, output = 12, value_info = 13 (ValueInfoProto)
//! NodeProto: input = 1, output = 2, op_type = 4, attribute = 5 (AttributeProto)
//! AttributeProto: t = 5 (TensorProto)
//! TensorProto: data_type = 2, int64_data = 7 (packed varints), name = 8, raw_data = 9 (little-endian)
//! ValueInfoProto: name = 1, type = 2 (TypeProto)
//! TypeProto: tensor_type = 1 (TypeProto.Tensor)
//! TypeProto.Tensor: shape = 2 (TensorShapeProto)
//! TensorShapeProto: dim = 1 (Dimension)
//! Dimension: dim_value = 1 (varint)
//! ```

use std::collections::HashSet;

use super::protobuf::{Field, all, field, field_at, fields, replace_first, varint, write_message};

/// Returns the model with `batch` as the first dimension of its input. `None` if this dimension is not the first of four, or
/// not 1, if the model does not have exactly one input, or if the bytes are not a model.
pub fn with_batch(model: &[u8], batch: usize) -> Option<Vec<u8>> {
    let graph = field(model, 7)?;
    let parts = fields(graph)?;
    let weights: Vec<_> = all(&parts, 5).filter_map(|tensor| field(tensor, 8)).collect();
    let is_weight = |input: &[u8]| field(input, 1).is_some_and(|name| weights.contains(&name));
    let mut inputs = all(&parts, 11).filter(|input| !is_weight(input));
    let (Some(input), None) = (inputs.next(), inputs.next()) else {
        return None;
    };
    let is_of_four = fields(field_at(input, &[2, 1, 2])?)?.len() == 4;
    if !is_of_four || field_at(input, &[2, 1, 2, 1])? != [DIM_VALUE, 1] {
        return None;
    }
    let batch_of_input = [vec![DIM_VALUE], varint(batch as u64)].concat();
    let shapes = reshape_constants(&parts, field(input, 1)?)?;
    let input = replace_first(input, &[2, 1, 2, 1], &batch_of_input)?;
    let mut changed = Vec::with_capacity(graph.len() + 16);
    for part in &parts {
        match part.number {
            11 if !is_weight(part.contents) => write_message(&mut changed, 11, &input),
            12 => {
                let tensor = fields(field_at(part.contents, &[2, 1])?)?;
                let others = tensor.iter().filter(|part| part.number != 2);
                let without_shape: Vec<u8> = others.flat_map(|part| part.whole).copied().collect();
                let output = replace_first(part.contents, &[2, 1], &without_shape)?;
                write_message(&mut changed, 12, &output);
            }
            13 => {}
            1 if shapes.iter().any(|&shape| is_constant(part.contents, shape)) => {
                let tensor = with_first_number(field_at(part.contents, &[5, 5])?, batch)?;
                write_message(&mut changed, 1, &replace_first(part.contents, &[5, 5], &tensor)?);
            }
            5 if field(part.contents, 8).is_some_and(|name| shapes.contains(&name)) => {
                write_message(&mut changed, 5, &with_first_number(part.contents, batch)?);
            }
            _ => changed.extend_from_slice(part.whole),
        }
    }
    replace_first(model, &[7], &changed)
}

/// Returns the names of the constants that are used as shapes `[1,...]` of values that depend on `input`.
fn reshape_constants<'m>(graph: &[Field<'m>], input: &'m [u8]) -> Option<Vec<&'m [u8]>> {
    let initializers = all(graph, 5).filter_map(|tensor| Some((field(tensor, 8)?, tensor)));
    let mut constants: Vec<(&[u8], &[u8])> = initializers.collect();
    // ONNX sorts nodes: each node comes after the nodes that it depends on.
    let (mut variable, mut shapes) = (HashSet::from([input]), Vec::new());
    for node in all(graph, 1) {
        let parts = fields(node)?;
        let all = |number| all(&parts, number);
        let inputs: Vec<&[u8]> = all(1).collect();
        if inputs.iter().any(|name| variable.contains(name)) {
            variable.extend(all(2));
        }
        match (all(4).next(), &inputs[..]) {
            (Some(b"Constant"), []) => {
                let tensor = all(5).next().and_then(|attribute| field(attribute, 5));
                constants.extend(all(2).next().zip(tensor));
            }
            (Some(b"Reshape"), [data, shape, ..]) if variable.contains(data) => {
                let constant = constants.iter().find(|(name, _)| name == shape);
                if constant.is_some_and(|(_, tensor)| with_first_number(tensor, 1).is_some()) {
                    shapes.push(*shape);
                }
            }
            _ => {}
        }
    }
    Some(shapes)
}

/// Returns whether `node` is the constant `name`.
fn is_constant(node: &[u8], name: &[u8]) -> bool {
    field(node, 4) == Some(b"Constant") && field(node, 2) == Some(name)
}

/// Returns a tensor of 64-bit integers with its first number, 1, replaced by `number`. `None` if the tensor has
/// another type, fewer than two numbers, or another first number.
fn with_first_number(tensor: &[u8], number: usize) -> Option<Vec<u8>> {
    let parts = fields(tensor)?;
    let contents = |number| all(&parts, number).next();
    let is_int64 = parts.iter().any(|part| part.number == 2 && part.whole == [2 << 3, 7]);
    let (field, one, mut changed) = match contents(9) {
        Some(_) => (9, &1u64.to_le_bytes()[..], (number as u64).to_le_bytes().to_vec()),
        None => (7, &[1][..], varint(number as u64)),
    };
    let rest = contents(field)?.strip_prefix(one)?;
    if rest.is_empty() || !is_int64 {
        return None;
    }
    changed.extend_from_slice(rest);
    replace_first(tensor, &[field], &changed)
}

/// The tag of the field `dim_value`, a varint.
const DIM_VALUE: u8 = 1 << 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_model_are_refused() {
        let mut random = fastrand::Rng::with_seed(26);
        for _ in 0..10_000 {
            let bytes: Vec<u8> = (0..random.usize(..64)).map(|_| random.u8(..)).collect();
            assert_eq!(with_batch(&bytes, 4), None);
        }
    }
}
