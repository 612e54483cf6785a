// SPDX-License-Identifier: MIT OR Apache-2.0
//! Methods that read a column of a layout file, with each backend.

use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::engines;
use crate::support::pipeline::{Ended, init, intercept, parse, regions, run, watch};
use crate::support::scratch::ScratchFile;

/// Rows of corners, score, density, and an embedding of two numbers.
const LAYOUT: &str = "name = crowd

[tensor rows]
shape = N,8

[score]
scores = rows 4

[box]
box = rows 0

[column density]
numbers = rows 5
count = 1
kind = density

[column embedding]
numbers = rows 6
count = 2
kind = embedding
";

/// The left edges of the regions of a frame with three people, of which each overlaps the next: the
/// intersection is 0.6 of the union.
fn left_edges(properties: &str) -> (Vec<u32>, Ended) {
    init();
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    let rows = [
        [0.0f32, 10.0, 40.0, 90.0, 0.9, 0.7, 0.0, 0.0],
        [10.0, 10.0, 50.0, 90.0, 0.8, 0.2, 0.0, 0.5],
        [20.0, 10.0, 60.0, 90.0, 0.7, 0.2, 3.0, 4.0],
    ];
    let tensor = NewTensor::from_vec("output", &[1, 3, 8], rows.concat()).unwrap();
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let seen = watch(&pipeline, "nms", regions);
    let ended = run(&pipeline);
    let found = std::mem::take(&mut *seen.lock().unwrap());
    (found.into_iter().flatten().map(|(_, [left, ..])| left).collect(), ended)
}

#[test]
fn densities_and_embeddings_of_a_layout_file_decide_which_regions_remain() {
    let file = ScratchFile::new("layout", LAYOUT.as_bytes());
    let backends = ["auto", "cpu", "cuda"];
    for backend in if engines::on_gpu() { &backends[..] } else { &backends[..2] } {
        let found = |settings: &str| {
            let decoder = format!("decoder=layout layout-file={}", file.display());
            let (found, ended) = left_edges(&format!("{decoder} backend={backend} {settings}"));
            assert_eq!(ended.error, None, "{settings}");
            found
        };
        assert_eq!(found("method=greedy iou-threshold=0.5"), [0, 20]);
        // The density 0.7 keeps the second person, who suppresses the third.
        assert_eq!(found("method=adaptive iou-threshold=0.5"), [0, 10]);
        assert_eq!(found("method=adaptive iou-threshold=0.1"), [0, 10]);
        // The third person's embedding is 5 from the first person's.
        assert_eq!(found("method=feature iou-threshold=0.1"), [0, 20]);
        assert_eq!(found("method=feature iou-threshold=0.1 embedding-distance=0.4"), [0, 10, 20]);
        assert_eq!(found("method=feature iou-threshold=0.1 embedding-distance=5"), [0]);
        let duplicates = "iou-threshold=0.1 embedding-distance=0.4 embedding-iou-threshold=0.5";
        assert_eq!(found(&format!("method=feature {duplicates}")), [0, 20]);
    }
}

#[test]
fn a_decoder_without_the_column_is_an_error_that_names_it() {
    let without = LAYOUT.split("[column embedding]").next().unwrap();
    let without = without.replace("[tensor rows]", "[tensor rows]\nignored = 6 2");
    let file = ScratchFile::new("layout", without.as_bytes());
    let settings = format!("decoder=layout layout-file={} method=feature", file.display());
    let (found, ended) = left_edges(&settings);
    assert!(found.is_empty());
    let expected =
        "the method feature reads a column of the kind embedding, but decoder crowd has none";
    assert!(ended.error().contains(expected), "{}", ended.error());
}
