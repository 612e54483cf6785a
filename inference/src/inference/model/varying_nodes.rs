// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds nodes whose output sizes depend on the picture, because they output one element for each input element
//! that meets a condition.
//!
//! In: the bytes of an ONNX file. Out: the type of such a node. ONNX Runtime captures these nodes in CUDA graphs,
//! although this is wrong: their kernels copy the number of elements to the host, a capture does not wait for this
//! copy, and so the graph later writes to memory that was never allocated.
//!
//! Only these fields are read ([onnx.proto](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto)):
//!
//! ```text
//! ModelProto: graph = 7, functions = 25 (FunctionProto)
//! GraphProto: node = 1 (NodeProto)
//! FunctionProto: node = 7
//! NodeProto: op_type = 4, attribute = 5 (AttributeProto)
//! AttributeProto: g = 6 (GraphProto), graphs = 11
//! ```

use super::protobuf::{all, fields};

/// The types of such nodes ([operators](https://onnx.ai/onnx/operators/)).
const TYPES: [&str; 4] = ["Compress", "NonMaxSuppression", "NonZero", "Unique"];

/// Returns the type of a node whose output sizes depend on the picture; `None` if there is no such node, or if the
/// bytes are not a model.
pub fn varying_node(model: &[u8]) -> Option<&'static str> {
    let parts = fields(model)?;
    let in_graph = all(&parts, 7).find_map(|graph| among_nodes(graph, 1));
    in_graph.or_else(|| all(&parts, 25).find_map(|function| among_nodes(function, 7)))
}

/// Searches the nodes in the field `number` of a message, and the graphs in the attributes of these nodes.
fn among_nodes(message: &[u8], number: u64) -> Option<&'static str> {
    all(&fields(message)?, number).find_map(|node| {
        let parts = fields(node)?;
        let is_type = |name: &&&str| all(&parts, 4).any(|part| part == name.as_bytes());
        TYPES.iter().find(is_type).copied().or_else(|| {
            let values = all(&parts, 5).filter_map(fields).flatten();
            let mut graphs = values.filter(|value| matches!(value.number, 6 | 11));
            graphs.find_map(|graph| among_nodes(graph.contents, 1))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::write_message;
    use super::*;

    /// Builds a message with these fields.
    fn message(parts: &[(u64, &[u8])]) -> Vec<u8> {
        let mut message = Vec::new();
        parts.iter().for_each(|(number, contents)| write_message(&mut message, *number, contents));
        message
    }

    #[test]
    fn nodes_are_found_in_the_graph_in_graphs_of_nodes_and_in_functions() {
        let conv = message(&[(1, b"input"), (4, b"Conv")]);
        let non_zero = message(&[(1, b"a"), (3, b"the NonZero"), (4, b"NonZero")]);
        let body = message(&[(1, &conv), (1, &non_zero)]);
        let branch = message(&[(4, b"If"), (5, &message(&[(1, b"then_branch"), (6, &body)]))]);
        let with = |nodes: &[(u64, &[u8])]| message(&[(7, &message(nodes))]);
        assert_eq!(varying_node(&with(&[(1, &conv)])), None);
        assert_eq!(varying_node(&with(&[(1, &conv), (1, &non_zero)])), Some("NonZero"));
        assert_eq!(varying_node(&with(&[(1, &branch)])), Some("NonZero"));
        let function = message(&[(7, &message(&[(4, b"Compress")]))]);
        let with_function = [with(&[(1, &conv)]), message(&[(25, &function)])].concat();
        assert_eq!(varying_node(&with_function), Some("Compress"));
    }

    #[test]
    fn bytes_that_are_no_model_have_none() {
        let mut random = fastrand::Rng::with_seed(26);
        for _ in 0..10_000 {
            let bytes: Vec<u8> = (0..random.usize(..64)).map(|_| random.u8(..)).collect();
            assert_eq!(varying_node(&bytes), None);
        }
    }
}
