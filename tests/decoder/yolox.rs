// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `yolox`: its id, its shapes and its layout.

use nmsfilter_core::decoder::{self, Choice, ChoiceError, Coordinates, Options, Reason};
use nmsfilter_core::engine::{ClassThresholds, Detection, Engine, Job, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use crate::support::{data, engines};

fn choose(id: &str, shape: &[usize], decoder: Option<&str>) -> Result<Choice, ChoiceError> {
    let zeros = vec![0.0f32; shape.iter().product()];
    let decoder = decoder.map(|name| decoder::by_name(name).unwrap());
    decoder::choose(&[TensorView::from_slice(id, shape, &zeros)], decoder, Options::default())
}

/// Returns the survivors of one image of 416 x 416 pixels. The reference engine and the fast engine
/// must agree.
fn survivors(elements: &[f32], shape: &[usize], params: &Params) -> Vec<Detection> {
    let tensors = [TensorView::from_slice("yolox-out", shape, elements)];
    let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
    let (mut reference, mut fast) = (Reference::default(), engines::fast());
    let expected = reference
        .run(Job::new(&tensors, &layout, params, &engines::places(&layout)))
        .unwrap()
        .group(0)
        .survivors
        .to_vec();
    let found = fast
        .run(Job::new(&tensors, &layout, params, &engines::places(&layout)))
        .unwrap()
        .group(0)
        .survivors
        .to_vec();
    assert_eq!(found, expected);
    found
}

#[test]
fn yolox_is_chosen_only_by_its_id_or_name() {
    let by_id = choose("yolox-out", &[1, 3549, 85], None).unwrap();
    let by_name = choose("out", &[1, 3549, 85], Some("yolox")).unwrap();
    for (choice, reason) in [(by_id, Reason::Id), (by_name, Reason::Shape)] {
        assert_eq!((choice.decoder.name(), choice.reason), ("yolox", reason));
        assert_eq!((choice.layout.anchors(), choice.layout.classes), (3549, 80));
    }
    let error = choose("out", &[1, 3549, 85], None).err().unwrap().to_string();
    assert!(error.contains("yolox with 80 classes"), "{error}");
    assert!(error.contains("yolox read decoded boxes"), "{error}");
}

#[test]
fn the_layout_of_yolox_equals_the_layout_of_yolov5() {
    let yolox = choose("yolox-out", &[1, 30, 8], None).unwrap().layout;
    let yolov5 = choose("yolo-v5-out", &[1, 30, 8], None).unwrap().layout;
    assert!(!yolox.normalized);
    assert_eq!(decoder::Layout { decoder: "yolov5", ..yolox }, yolov5);
}

#[test]
fn shapes_of_other_families_are_errors() {
    for shape in [&[1, 85, 3549][..], &[1, 30, 5], &[1, 5, 6], &[30], &[1, 1, 30, 85]] {
        let error = choose("yolox-out", shape, None).err().unwrap().to_string();
        assert!(error.contains("decoder yolox expects one tensor [1,N,5+C]"), "{shape:?}: {error}");
    }
    let error = choose("yolox-out", &[2, 30, 8], None).err().unwrap().to_string();
    assert!(error.contains("expected a batch dimension of 1, got 2"), "{error}");
}

#[test]
fn coordinates_are_pixels_unless_the_property_says_otherwise() {
    let zeros = [0.0f32; 180];
    let tensors = [TensorView::from_slice("yolox-out", &[1, 30, 6], &zeros)];
    for (coordinates, normalized) in
        [(Coordinates::Auto, false), (Coordinates::Pixels, false), (Coordinates::Normalized, true)]
    {
        let options = Options { coordinates, ..Options::default() };
        let layout = decoder::choose(&tensors, None, options).unwrap().layout;
        assert_eq!(layout.normalized, normalized, "{coordinates:?}");
    }
}

#[test]
fn class_scores_are_multiplied_by_objectness() {
    let mut rows = [[0.0f32; 7]; 7];
    rows[1] = [20.0, 30.0, 8.0, 4.0, 0.5, 0.25, 0.75];
    // The next row suppresses this one: its class is equal and its score is higher.
    rows[4] = [60.0, 60.0, 10.0, 10.0, 0.75, 0.5, 0.25];
    rows[5] = [61.0, 60.0, 10.0, 10.0, 1.0, 0.5, 0.0];
    let found = survivors(rows.as_flattened(), &[1, 7, 7], &Params::default());
    let found: Vec<_> =
        found.iter().map(|d| (d.anchor, d.class, d.score, [d.x1, d.y1, d.x2, d.y2])).collect();
    let expected = [(5, 0, 0.5, [56.0, 55.0, 66.0, 65.0]), (1, 1, 0.375, [16.0, 28.0, 24.0, 32.0])];
    assert_eq!(found, expected);
}

/// Returns the elements of a `.npy` file of f32.
fn npy(bytes: &[u8]) -> Vec<f32> {
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let elements = bytes[10 + header..].as_chunks::<4>().0;
    elements.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// Decodes the boxes of a raw output as YOLOX's export does: the center is the cell's index plus
/// the offset, the side is the exponential of the element, and both are multiplied by the stride of
/// the cell's grid.
fn decode_boxes(rows: &mut [f32], side: usize) {
    let cells = [8, 16, 32].into_iter().flat_map(|stride| {
        let cells = side / stride;
        (0..cells * cells).map(move |cell| [cell % cells, cell / cells, stride].map(|n| n as f32))
    });
    for (row, [column, line, stride]) in rows.as_chunks_mut::<85>().0.iter_mut().zip(cells) {
        row[0] = (row[0] + column) * stride;
        row[1] = (row[1] + line) * stride;
        row[2] = row[2].exp() * stride;
        row[3] = row[3].exp() * stride;
    }
}

/// Outputs of YOLOX-nano. A NumPy decoder computed the expected survivors.
#[test]
fn recorded_outputs_have_the_expected_survivors() {
    for (case, count) in [("bus", 5), ("street", 16)] {
        let folder = format!("data/models2026/06_yolox/{case}");
        let Some(recorded) = data::path(&format!("{folder}/output.npy")) else {
            return;
        };
        let Some(expected) = data::path(&format!("{folder}/expected.csv")) else {
            return;
        };
        let mut elements = npy(&std::fs::read(recorded).unwrap());
        assert_eq!(elements.len(), 3549 * 85);
        decode_boxes(&mut elements, 416);
        let params = Params {
            thresholds: ClassThresholds::uniform(0.25),
            iou_threshold: 0.45,
            ..Params::default()
        };
        let found = survivors(&elements, &[1, 3549, 85], &params);
        assert_eq!(found.len(), count, "{case}");

        let expected = std::fs::read_to_string(expected).unwrap();
        for (found, line) in found.iter().zip(expected.lines().skip(1)) {
            let numbers: Vec<f32> = line.split(',').map(|number| number.parse().unwrap()).collect();
            let [x1, y1, x2, y2, score, class, anchor] = numbers[..] else { panic!("{line}") };
            assert_eq!((found.class, found.anchor), (class as u32, anchor as u32), "{case}");
            let pairs = [(found.x1, x1), (found.y1, y1), (found.x2, x2), (found.y2, y2)];
            assert!(pairs.iter().all(|(a, b)| (a - b).abs() < 1e-3), "{case}: {found:?}, {line}");
            assert!((found.score - score).abs() < 1e-6, "{case}: {found:?}, {line}");
        }
        assert_eq!(expected.lines().count(), count + 1, "{case}");
    }
}
