// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invalid descriptions of layouts: the error has the line and the reason.

use nmsfilter_core::decoder::description::{Description, MAX_LENGTH};
use nmsfilter_core::decoder::layout::ColumnKind;
use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::tensor::TensorView;

const TEXT: &str = "name = yolox-raw

[tensor output]
names = output, output0
shape = N,5+C

[anchors]
strides = 8 16 32

[score]
scores = output 5
objectness = output 4

[box]
box = output 0
format = center
transform = exp
";

fn message(text: &str) -> String {
    Description::parse(text).err().unwrap_or_else(|| panic!("no error in {text}")).to_string()
}

/// Returns the error for [`TEXT`] after its line `line` is replaced.
fn with(line: usize, replacement: &str) -> String {
    let lines = TEXT.lines().enumerate();
    let text: Vec<&str> =
        lines.map(|(index, text)| if index + 1 == line { replacement } else { text }).collect();
    message(&text.join("\n"))
}

#[test]
fn a_description_is_read_with_comments_spaces_and_carriage_returns() {
    for text in [
        TEXT.to_owned(),
        TEXT.replace('\n', "\r\n"),
        TEXT.replace('\n', "   # a comment = [x]\n  "),
        TEXT.replace(" = ", "="),
    ] {
        let description = Description::parse(&text).unwrap();
        assert_eq!(description.name, "yolox-raw");
        assert_eq!(description.expects(), "output [1,N,5+C]");
    }
}

#[test]
fn errors_have_the_line_what_was_expected_and_what_is_there() {
    let cases = [
        (1, "nam = x", "line 1: the file needs name = ..."),
        (1, "name =", "line 1: name: expected a value, got \"\""),
        (1, "name", "line 1: line: expected KEY = VALUE or [SECTION], got \"name\""),
        (
            2,
            "size = 3",
            "line 2: key of the file: expected name, about, label, values, got \"size\"",
        ),
        (2, "values = some", "line 2: values: expected probabilities, model, any, got \"some\""),
        (2, "name = x", "line 2: a second name; expected one in a section"),
        (3, "[tensor]", "line 3: section: expected [KIND] or [KIND NAME], got \"[tensor]\""),
        (
            3,
            "[tensor output",
            "line 3: section: expected [KIND] or [KIND NAME], got \"[tensor output\"",
        ),
        (
            3,
            "[tensor a b]",
            "line 3: section: expected [KIND] or [KIND NAME], got \"[tensor a b]\"",
        ),
        (
            3,
            "[output]",
            "line 3: section: expected [tensor NAME], [anchors], [score], [box], [column NAME], [priors], got \
             \"output\"",
        ),
        (
            4,
            "names = a,,b",
            "line 4: names: expected 1 to 64 names separated by commas, got \"a,,b\"",
        ),
        (5, "", "line 3: section [tensor output] needs shape = ..."),
        (
            5,
            "shape = N,B",
            "line 5: shape: expected up to 4 dimensions such as N,5+C: of N, A, H, W, K, and a number, C, or both, \
             got \"N,B\"",
        ),
        (
            5,
            "shape = H,W,5+C",
            "line 5: shape: expected N, or per-level = yes for H and W, got \"H,W,5+C\"",
        ),
        (
            5,
            "shape = A,7,H,W",
            "line 5: shape: expected one dimension of numbers, or K,3 or K,2, before or after those of the anchors, got \"A,7,H,W\"",
        ),
        (
            5,
            "shape = N,4+C",
            "line 11: scores: expected C from column 5 on to be within the tensor's shape N,4+C, got \"output 5\"",
        ),
        (
            5,
            "shape = 5+C",
            "line 15: box: expected a tensor whose shape has N, or H and W, got \"output 0\"",
        ),
        (
            8,
            "strides = 8 0",
            "line 8: strides: expected 1 to 8 whole numbers from 1 to 65535, separated by spaces, got \"8 0\"",
        ),
        (
            8,
            "strides = 8, 16, 32",
            "line 8: strides: expected 1 to 8 whole numbers from 1 to 65535, separated by spaces, got \"8, 16, 32\"",
        ),
        (
            8,
            "strides = 8 32 16",
            "line 8: strides: expected numbers in ascending or descending order, as the levels, got \"8 32 16\"",
        ),
        (
            8,
            "strides = 1 1 1 1 1 1 1 1 1",
            "line 8: strides: expected 1 to 8 whole numbers from 1 to 65535, separated by spaces, got \
             \"1 1 1 1 1 1 1 1 1\"",
        ),
        (
            8,
            "stride = 8",
            "line 8: key of section [anchors]: expected strides, cells, rounding, offset, scale-xy, per-cell, order, sizes, \
             priors, count, pairs, image, got \"stride\"",
        ),
        (
            8,
            "offset = 0.5",
            "line 8: offset: expected strides or cells in the same section, got \"0.5\"",
        ),
        (8, "cells = 19 10", "line 14: section [box] needs unit = normalized with cells"),
        (9, "offset = nan", "line 9: offset: expected a number from 0 to 1, got \"nan\""),
        (
            9,
            "per-cell = 2 3",
            "line 9: per-cell: expected one number, or 3, one for each level, got \"2 3\"",
        ),
        (
            9,
            "sizes = 10x13",
            "line 9: sizes: expected 1 to 6 sizes such as 10x13 for each of 3 levels, separated by commas, got \
             \"10x13\"",
        ),
        (
            9,
            "sizes = 116x90, 30x61, 10x13",
            "line 9: sizes: expected larger sizes for levels with larger cells, got \"116x90, 30x61, 10x13\"",
        ),
        (9, "order = column", "line 9: order: expected cell, anchor, got \"column\""),
        (
            9,
            "priors = output",
            "line 7: expected one of strides, cells, priors and a section [priors], got several",
        ),
        (9, "[anchors]", "line 9: a second section [anchors]; expected one"),
        (
            9,
            "[tensor output]\nshape = N",
            "line 9: a second section [tensor output]; expected one for each name",
        ),
        (
            9,
            "[tensor more]\nshape = N",
            "line 9: tensor more is in no field; remove its section, or use it",
        ),
        (
            5,
            "shape = N,5+C\nignored = all",
            "line 3: tensor output is in a field; expected none of an ignored tensor",
        ),
        (
            11,
            "scores = out 5",
            "line 11: scores: expected the name of a section [tensor NAME], and a column, got \"out 5\"",
        ),
        (
            11,
            "scores = output x",
            "line 11: scores: expected a column such as 4, C or C+32 after the tensor, got \"output x\"",
        ),
        (11, "", "line 10: section [score] needs scores = ..."),
        (
            12,
            "activation = tanh",
            "line 12: activation: expected none, sigmoid, softmax, got \"tanh\"",
        ),
        (
            12,
            "class = output 4\nbackground = yes",
            "line 12: class: expected no background where the class has a field, got \"output 4\"",
        ),
        (
            14,
            "[boxes]",
            "line 14: section: expected [tensor NAME], [anchors], [score], [box], [column NAME], [priors], got \
             \"boxes\"",
        ),
        (
            16,
            "format = round",
            "line 16: format: expected corners, center, square, distances, got \"round\"",
        ),
        (
            17,
            "transform = expectation",
            "line 17: transform: expected bins with expectation, got \"expectation\"",
        ),
        (17, "bins = 16", "line 17: bins: expected transform = expectation, got \"16\""),
        (
            17,
            "variances = 0.1",
            "line 17: variances: expected two numbers separated by a space, for positions and for sizes, got \"0.1\"",
        ),
        (
            17,
            "unit = normalized",
            "line 17: unit: expected pixels, the unit of strides, got \"normalized\"",
        ),
        (17, "[column k]\nnumbers = output 4", "line 17: section [column k] needs count = ..."),
        (
            17,
            "[column k]\nnumbers = output 4\ncount = 9",
            "line 18: numbers: expected 9 from column 4 on to be within the tensor's shape N,5+C, got \"output 4\"",
        ),
        (
            17,
            "[priors]\n1 2 3",
            "line 18: prior: expected center x, center y, width and height, separated by spaces, got \"1 2 3\"",
        ),
    ];
    for (line, replacement, expected) in cases {
        assert_eq!(with(line, replacement), expected, "{replacement}");
    }
}

#[test]
fn a_missing_section_is_an_error_at_the_end_of_the_text() {
    let text = "name = a\n[tensor t]\nshape = N,5\n";
    assert_eq!(message(text), "line 3: the file needs a section [box]");
    assert_eq!(
        message(&format!("{text}[box]\nbox = t\n")),
        "line 5: the file needs a section [score]"
    );
    // Sections that exist have line numbers of their own.
    assert_eq!(message(&format!("{text}[box]\n")), "line 4: section [box] needs box = ...");
}

#[test]
fn strides_are_in_the_order_of_the_levels() {
    for strides in ["32 16 8", "8 16 16 16", "4"] {
        let text = TEXT.replace("8 16 32", strides);
        assert!(Description::parse(&text).is_ok(), "{strides}");
    }
    for (strides, sizes) in
        [("32 16 8", "116x90, 30x61, 10x13"), ("8 16 32", "10x13 16x30, 30x61, 116x90 9x9")]
    {
        let text = TEXT.replace("8 16 32", &format!("{strides}\nsizes = {sizes}"));
        assert!(Description::parse(&text).is_ok(), "{strides}: {sizes}");
    }
    let text = TEXT.replace("8 16 32", "32 16 8\nsizes = 10x13, 30x61, 116x90");
    assert!(message(&text).contains("sizes: expected larger sizes for levels with larger cells"));
    let cells = TEXT.replace("strides = 8 16 32", "cells = 19 10\nsizes = 0.5, 0.1");
    let text = message(&format!("{cells}unit = normalized\n"));
    assert!(text.contains("larger sizes for levels with larger cells"), "{text}");
}

#[test]
fn distances_need_a_point() {
    let text = "name = a\n[tensor t]\nshape = N,5\n[score]\nscores = t 4\n[box]\nbox = t\nformat = distances\n";
    assert_eq!(
        message(text),
        "line 6: format: distances need anchors; expected strides, cells or priors in [anchors]"
    );
}

#[test]
fn messages_repeat_the_start_of_a_long_value() {
    let text = with(1, &format!("name = x\nvalues = {}", "é".repeat(100)));
    assert_eq!(
        text,
        format!(
            "line 2: values: expected probabilities, model, any, got \"{}...\"",
            "é".repeat(40)
        )
    );
}

#[test]
fn the_length_of_a_text_is_limited() {
    let long = format!("name = {}", "x".repeat(MAX_LENGTH));
    assert!(message(&long).contains(&format!("expected at most {MAX_LENGTH} bytes of text")));
    assert!(message(&"[tensor x]\n".repeat(1000)).contains("expected at most 64 sections"));
    let keys: String = (0..100).map(|index| format!("k{index} = 1\n")).collect();
    assert!(message(&keys).contains("expected at most 32 keys in a section"));
    let names = format!("names = {}", "a,".repeat(1000));
    assert!(with(4, &names).contains("expected 1 to 64 names"));
    let rows = format!("{TEXT}[priors]\n{}", "1 2 3 4\n".repeat(100_000));
    assert!(message(&rows).contains("got several"));
}

/// Parts of descriptions in any order, cut anywhere, give a description or an error, never a panic.
#[test]
fn any_text_is_a_description_or_an_error() {
    let words = [
        "name = a\n",
        "[tensor t]\n",
        "[tensor u]\n",
        "shape = ",
        "N,5+C",
        "N",
        "4,N or N,4",
        "A,H,W,5+C",
        "1",
        "\n",
        "per-level = yes\n",
        "ids = ",
        "a_{stride}, b c d",
        "[anchors]\n",
        "strides = 8 16 32\n",
        "cells = 3\n",
        "sizes = 1 2x3, 4\n",
        "per-cell = 2\n",
        "order = anchor\n",
        "count = u\n",
        "priors = t 1\n",
        "[score]\n",
        "scores = t 4\n",
        "scores = t C\n",
        "class = u\n",
        "objectness = t 4\n",
        "background = yes\n",
        "[box]\n",
        "box = t\n",
        "box = t C+1\n",
        "format = distances\n",
        "transform = expectation\nbins = 16\n",
        "variances = 1 2\n",
        "unit = normalized\n",
        "[column k]\n",
        "numbers = t 1\n",
        "count = 3\n",
        "[priors]\n",
        "1 2 3 4\n",
        "nan 1 1 1\n",
        "#",
        "=",
        "é",
        "[",
        "]",
        "999999999999999999999",
        "-1",
        "1e300",
        "C+C",
        "+",
    ];
    let mut rng = fastrand::Rng::with_seed(5);
    let mut parsed = 0;
    for _ in 0..100_000 {
        let mut text: String = if rng.bool() {
            (0..rng.usize(..30)).map(|_| *rng.choice(&words).unwrap()).collect()
        } else {
            TEXT.to_owned()
        };
        for _ in 0..rng.usize(..3) {
            let at = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect::<Vec<_>>();
            text.insert_str(*rng.choice(&at).unwrap(), rng.choice(&words).unwrap());
        }
        match Description::parse(&text) {
            Ok(description) => {
                assert!(!description.expects().is_empty());
                parsed += 1;
            }
            Err(error) => {
                let lines = text.lines().count().max(1);
                assert!((1..=lines).contains(&error.line), "{error}: {text}");
                assert!(error.to_string().len() < 400, "{error}");
            }
        }
    }
    assert!(parsed > 1000, "{parsed}");
}

const MASKS: &str = "name = masks

[tensor output]
shape = 4+C+M,N
exact = yes
fewer-anchors = no

[tensor prototypes]
shape = M,H,W or H,W,M

[score]
scores = output 4

[box]
box = output
format = center

[column mask]
numbers = output C+4
count = M
prototypes = prototypes
";

#[test]
fn shapes_that_leave_a_number_open_need_what_tells_it() {
    assert!(Description::parse(MASKS).is_ok());
    let keypoints = MASKS
        .replace("4+C+M", "4+C+3K,N or 4+C+2K")
        .replace("\n[tensor prototypes]\nshape = M,H,W or H,W,M\n", "")
        .replace("count = M\nprototypes = prototypes", "count = K\nkind = points\nunit = boxes");
    assert!(Description::parse(&keypoints).is_ok(), "{keypoints}");
    let cases = [
        (
            MASKS.replace("exact = yes", "exact = maybe"),
            "line 5: exact: expected yes, no, got \"maybe\"",
        ),
        (
            MASKS.replace("fewer-anchors = no", "fewer-anchors = 3"),
            "line 6: fewer-anchors: expected yes, no, known-classes, got \"3\"",
        ),
        (
            MASKS.replace("4+C+M,N", "4+C+M,N or 4+C,N"),
            "line 4: shape: expected M, or 2K or 3K, in each shape or in none, got \"4+C+M,N or 4+C,N\"",
        ),
        (
            MASKS.replace("4+C+M", "M+4+C+2K"),
            "line 4: shape: expected up to 4 dimensions such as N,5+C: of N, A, H, W, K, and a number, C, or both, \
             got \"M+4+C+2K,N\"",
        ),
        (
            MASKS.replace("M,H,W or H,W,M", "M,H,W or M,H,W"),
            "line 21: prototypes: expected the name of a section [tensor NAME] with the shape M,H,W or H,W,M, or both, \
             got \"prototypes\"",
        ),
        (
            MASKS.replace("M,H,W or H,W,M", "N,4+M"),
            "line 8: tensor prototypes: expected M or K in one section",
        ),
        (
            MASKS.replace("output C+4", "output M"),
            "line 19: numbers: expected a column such as 4, C or C+32 after the tensor, got \"output M\"",
        ),
        (
            MASKS.replace("4+C+M", "4+C+3K"),
            "line 19: numbers: expected M from column 4+C on to be within the tensor's shape 4+C+3K,N, got \"output \
             C+4\"",
        ),
        (
            MASKS.replace("\nprototypes = prototypes", ""),
            "line 18: section [column mask] needs prototypes = ...",
        ),
        (
            MASKS
                .replace("output C+4", "output 4")
                .replace("count = M\nprototypes = prototypes", "count = 1"),
            "line 3: tensor output: M needs a section [column NAME] with count = M",
        ),
        (
            MASKS.to_owned()
                + "\n[column more]\nnumbers = output C+4\ncount = M\nprototypes = prototypes\n",
            "line 23: a second column with count = M; expected one",
        ),
        (
            keypoints.replace("kind = points\nunit = boxes", ""),
            "line 15: section [column mask]: count = K needs kind = points",
        ),
        (
            keypoints.replace("boxes", "cells"),
            "line 19: unit: expected pixels, normalized, boxes, got \"cells\"",
        ),
        (
            MASKS.replace("scores = output 4", "scores = prototypes"),
            "line 12: scores: expected 1 from column 0 on to be within the tensor's shape M,H,W, got \"prototypes\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message(&text), expected, "{text}");
    }
}

#[test]
fn names_in_braces_become_shapes() {
    let about = "about = {output} of numbers, and {prototypes} of images\n";
    let text = MASKS.replace("name = masks\n", &format!("name = masks\n{about}"));
    assert_eq!(
        Description::parse(&text).unwrap().expects(),
        "[1,4+C+M,N] of numbers, and [1,M,H,W] or [1,H,W,M] of images"
    );
}

#[test]
fn a_column_can_have_densities_or_embeddings() {
    let text = |column: &str| {
        format!(
            "name = mine\n[tensor output]\nshape = N,9\n[score]\nscores = output 4\n[box]\nbox = output\n\
             [column first]\nnumbers = output 5\n{column}\n"
        )
    };
    let embedding = "[column second]\nnumbers = output 6\ncount = 3\nkind = embedding";
    let decoder = decoder::from_text(&text(&format!("count = 1\nkind = density\n{embedding}")));
    let numbers = [0.0f32; 18];
    let tensors = [TensorView::from_slice("output", &[1, 2, 9], &numbers)];
    let choice = decoder::choose(&tensors, Some(decoder.unwrap()), Options::default()).unwrap();
    let columns: Vec<_> = choice.layout.columns.iter().map(|it| (it.kind, it.components)).collect();
    assert_eq!(columns, [(ColumnKind::Density, 1), (ColumnKind::Embedding, 3)]);
    for (column, expected) in [
        (
            "count = 2\nkind = density",
            "line 11: kind: expected count = 1 in the same section, got \"density\"",
        ),
        (
            "count = 2\nkind = embedding\nrelative = 1",
            "line 12: relative: expected kind = points in the same section, got \"1\"",
        ),
        (
            "count = 1\nkind = distance",
            "line 11: kind: expected numbers, points, points-with-visibility, density, embedding, got \"distance\"",
        ),
        (
            "count = 1\nkind = density\n[column more]\nnumbers = output 6\ncount = 1\nkind = density",
            "line 12: a second column with kind = density; expected one",
        ),
    ] {
        assert_eq!(message(&text(column)), expected);
    }
}
