//! Which head reads which tensors, and why.

mod engines;

use gstnmsfilter::engine::Params;
use gstnmsfilter::head::{self, BoxFormat, Choice, ChoiceError, Options, Reason};
use gstnmsfilter::tensor::Tensor;

const FACE_SCORES: &str = "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores";
const FACE_BOXES: &str = "ssd-mobilenet-v1-variant-1-out-boxes";

/// The choice among zeros of these ids and shapes.
fn choose(tensors: &[(&str, &[usize])], decoder: Option<&str>) -> Result<Choice, ChoiceError> {
    let zeros: Vec<Vec<f32>> =
        tensors.iter().map(|(_, shape)| vec![0.0; shape.iter().product()]).collect();
    let tensors: Vec<Tensor<'_>> = tensors
        .iter()
        .zip(&zeros)
        .map(|((id, shape), zeros)| Tensor::from_slice(id, shape, zeros))
        .collect();
    let decoder = decoder.map(|name| head::by_name(name).unwrap());
    let choice = head::choose(&tensors, decoder, Options::default())?;
    // Whatever is chosen can be read: no index of it lies outside.
    engines::fast().run(&tensors, &choice.layout, &Params::default()).unwrap();
    Ok(choice)
}

/// Name, anchors, classes and reason.
fn chosen(tensors: &[(&str, &[usize])]) -> (&'static str, usize, usize, Reason) {
    let choice = choose(tensors, None).unwrap_or_else(|error| panic!("{tensors:?}: {error}"));
    (choice.head.name(), choice.layout.anchors, choice.layout.classes, choice.reason)
}

fn message(tensors: &[(&str, &[usize])], decoder: Option<&str>) -> String {
    choose(tensors, decoder).err().expect("nothing fits").to_string()
}

#[test]
fn ids_decide_first() {
    use Reason::Id;
    assert_eq!(chosen(&[("windows", &[7, 4])]), ("windows", 7, 1, Id));
    assert_eq!(chosen(&[("yolo-v8-out", &[1, 84, 8400])]), ("yolov8", 8400, 80, Id));
    assert_eq!(chosen(&[("yolo-v8-out", &[1, 8400, 84])]), ("yolov8", 8400, 80, Id));
    assert_eq!(chosen(&[("yolo-v8-out-normalized", &[1, 5, 2100])]), ("yolov8", 2100, 1, Id));
    assert_eq!(chosen(&[("yolo-v5-out", &[1, 25200, 85])]), ("yolov5", 25200, 80, Id));
    let boxes: [(&str, &[usize]); 2] = [("scores", &[9, 3]), ("boxes", &[9, 4])];
    assert_eq!(chosen(&boxes), ("boxes", 9, 3, Id));
    let faces: [(&str, &[usize]); 2] = [(FACE_SCORES, &[1, 9, 2]), (FACE_BOXES, &[1, 9, 4])];
    assert_eq!(chosen(&faces), ("ultraface", 9, 1, Id));
}

#[test]
fn then_shapes_do() {
    use Reason::Shape;
    assert_eq!(chosen(&[("a", &[1, 84, 8400])]), ("yolov8", 8400, 80, Shape));
    assert_eq!(chosen(&[("a", &[84, 8400])]), ("yolov8", 8400, 80, Shape));
    assert_eq!(chosen(&[("a", &[1, 8400, 5])]), ("yolov8", 8400, 1, Shape));
    assert_eq!(chosen(&[("a", &[1, 30, 4])]), ("windows", 30, 1, Shape));
    for scores in [&[30][..], &[1, 30], &[30, 1], &[1, 30, 1]] {
        assert_eq!(chosen(&[("a", &[1, 30, 4]), ("b", scores)]), ("boxes", 30, 1, Shape));
    }
    assert_eq!(chosen(&[("a", &[30, 7]), ("b", &[30, 4])]), ("boxes", 30, 7, Shape));
}

#[test]
fn tensors_of_other_use_do_not_stand_in_the_way() {
    let (embedding, mask): (&[usize], &[usize]) = (&[1, 128, 1, 1], &[1, 32, 160, 160]);
    assert_eq!(
        chosen(&[("a", mask), ("yolo-v8-out", &[1, 84, 2100]), ("c", embedding)]).0,
        "yolov8"
    );
    assert_eq!(chosen(&[("a", mask), ("b", &[1, 84, 2100])]).0, "yolov8");
    let choice = choose(&[("a", mask), ("b", &[1, 84, 2100])], None).unwrap();
    assert_eq!(choice.layout.boxes.tensor, 1, "the layout points at the second tensor");
}

#[test]
fn where_two_heads_fit_it_asks() {
    let text = message(&[("out", &[1, 25200, 85])], None);
    assert_eq!(
        text,
        "the buffer's tensors (out (f32 1x25200x85)) can be read as yolov5 or yolov8; \
         set the property decoder to the right one"
    );
    let text = message(&[("a", &[1, 9, 2]), ("b", &[1, 9, 4])], None);
    assert!(text.contains("can be read as boxes or ultraface"), "{text}");
    for (decoder, anchors, classes) in [("yolov5", 25200, 80), ("yolov8", 25200, 81)] {
        let choice = choose(&[("out", &[1, 25200, 85])], Some(decoder)).unwrap();
        assert_eq!((choice.layout.anchors, choice.layout.classes), (anchors, classes));
    }
}

#[test]
fn where_one_head_fits_twice_it_asks_for_ids() {
    let text = message(&[("a", &[9, 4]), ("b", &[9, 4])], Some("boxes"));
    assert!(text.contains("boxes in 2 ways; give the tensor that holds the detections an id"));
    let named: [(&str, &[usize]); 2] = [("scores", &[9, 4]), ("boxes", &[9, 4])];
    assert_eq!(chosen(&named), ("boxes", 9, 4, Reason::Id));
}

#[test]
fn an_output_on_its_side_is_not_read_as_another_head() {
    let text = message(&[("yolo-v8-out", &[1, 84, 8400])], Some("yolov5"));
    assert!(text.contains("decoder yolov5 expects one tensor [1,N,5+C], N >= 5+C"), "{text}");
}

#[test]
fn duplicates_batches_and_misfits_are_named() {
    let text = message(&[("yolo-v8-out", &[1, 6, 9]), ("yolo-v8-out", &[1, 6, 9])], None);
    assert!(text.contains("two tensors have the id yolo-v8-out"), "{text}");
    let text = message(&[("out", &[4, 84, 8400])], None);
    assert!(text.contains("expected a batch dimension of 1, got 4"), "{text}");
    let text = message(&[("boxes", &[9, 4]), ("scores", &[8, 4])], None);
    assert!(text.contains("tensor scores (f32 8x4): decoder boxes expects"), "{text}");
    let text = message(&[], None);
    assert!(text.contains("no tensor fits any decoder"), "{text}");
}

#[test]
fn boxes_have_as_many_numbers_as_their_format() {
    for (format, numbers) in
        [(BoxFormat::Corners, 4), (BoxFormat::Centre, 4), (BoxFormat::Square, 3)]
    {
        let (boxes, scores) = (vec![0.0f32; 9 * numbers], [0.0f32; 9]);
        let tensors = [
            Tensor::from_slice("boxes", &[9, numbers], &boxes),
            Tensor::from_slice("scores", &[9], &scores),
        ];
        let options = Options { box_format: format, ..Options::default() };
        assert_eq!(head::choose(&tensors, None, options).unwrap().layout.box_format, format);
        let wrong = [Tensor::from_slice("boxes", &[numbers, 9], &boxes), tensors[1].clone()];
        assert!(head::choose(&wrong, None, options).is_err(), "{format:?}");
    }
}
