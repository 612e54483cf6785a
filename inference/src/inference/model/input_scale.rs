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

use super::protobuf::{all, field, fields};

/// The scale and zero point of the input `name`; `None` if it is not dequantized by a single scale.
pub fn find(model: &[u8], name: &str, is_signed: bool) -> Option<(f64, f64)> {
    let graph = fields(field(model, 7)?)?;
    let inputs_of = |node: &'_ [u8]| -> Option<Vec<Vec<u8>>> {
        Some(all(&fields(node)?, 1).map(<[u8]>::to_vec).collect())
    };
    let is_dequantizer = |node: &&[u8]| field(node, 4) == Some(b"DequantizeLinear");
    let inputs = all(&graph, 1)
        .filter(is_dequantizer)
        .filter_map(inputs_of)
        .find(|inputs| inputs.first().is_some_and(|input| input == name.as_bytes()))?;
    let constant = |name: &Vec<u8>| all(&graph, 5).find(|tensor| field(tensor, 8) == Some(name));
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
