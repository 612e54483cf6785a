// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of points in descriptions: where they are accepted, and the errors elsewhere.

use nmsfilter_core::decoder::description::Description;

/// A description with a column of these lines, of which the first is line 14.
fn parsed(column: &str) -> Result<(), String> {
    let text = format!(
        "name = points\n[tensor output]\nshape = N,10+C\n[anchors]\nstrides = 8\n[score]\nscores = output 10\n\
         [box]\nbox = output\nformat = distances\n[column points]\nnumbers = output 4\ncount = 6\n{column}"
    );
    Description::parse(&text).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn a_shift_needs_relative_points_and_the_sigmoid_needs_a_visibility() {
    assert_eq!(parsed("kind = points\nrelative = 2\nshift = -0.5"), Ok(()));
    assert_eq!(parsed("kind = points-with-visibility\nvisibility = sigmoid"), Ok(()));
    for (column, error) in [
        ("kind = points\nshift = 1", "15: shift: expected relative in the same section, got \"1\""),
        ("kind = points\nrelative = 1\nshift = inf", "16: shift: expected a number, got \"inf\""),
        ("shift = 1", "14: shift: expected kind = points in the same section, got \"1\""),
        (
            "visibility = sigmoid",
            "14: visibility: expected kind = points in the same section, got \"sigmoid\"",
        ),
        (
            "kind = points\nvisibility = sigmoid",
            "15: visibility: expected kind = points-with-visibility in the same section, got \"sigmoid\"",
        ),
        (
            "kind = points-with-visibility\nvisibility = softmax",
            "15: visibility: expected none, sigmoid, got \"softmax\"",
        ),
    ] {
        assert_eq!(parsed(column), Err(format!("line {error}")), "{column}");
    }
}
