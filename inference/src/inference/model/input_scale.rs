// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scale and zero point of a quantized input.
//!
//! In: the bytes of a model's file and the name of its input. Out: the constants of the node `DequantizeLinear` behind it.
//!
//! ```text
//! ModelProto: graph = 7 (GraphProto)
//! GraphProto: node = 1 (NodeProto), initializer = 5 (TensorProto)
//! NodeProto: input = 1, op_type = 4
//! TensorProto: float_data = 4, name = 8, raw_data = 9
//! ```

use super::protobuf::{field, fields};

/// The scale and zero point of the input `name`; `None` if it is not dequantized by a single scale.
pub fn find(model: &[u8], name: &str, is_signed: bool) -> Option<(f64, f64)> {
    let graph = fields(field(model, 7)?)?;
    let inputs_of = |node: &'_ [u8]| -> Option<Vec<Vec<u8>>> {
        let inputs = fields(node)?.into_iter().filter(|part| part.number == 1);
        Some(inputs.map(|part| part.contents.to_vec()).collect())
    };
    let is_dequantizer = |node: &&[u8]| field(node, 4) == Some(b"DequantizeLinear");
    let nodes = graph.iter().filter(|part| part.number == 1).map(|part| part.contents);
    let inputs = nodes
        .filter(is_dequantizer)
        .filter_map(inputs_of)
        .find(|inputs| inputs.first().is_some_and(|input| input == name.as_bytes()))?;
    let constant = |name: &Vec<u8>| {
        let tensors = graph.iter().filter(|part| part.number == 5).map(|part| part.contents);
        let mut of_name = tensors.filter(|tensor| field(tensor, 8) == Some(name));
        of_name.next()
    };
    let scale = constant(inputs.get(1)?)?;
    let scale = field(scale, 9).or_else(|| field(scale, 4))?;
    let scale = f32::from_le_bytes(scale.try_into().ok()?);
    let zero_point = match inputs.get(2) {
        None => 0.0,
        Some(name) => match *field(constant(name)?, 9)? {
            [byte] if is_signed => f64::from(byte.cast_signed()),
            [byte] => f64::from(byte),
            _ => return None,
        },
    };
    Some((f64::from(scale), zero_point))
}
