// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that were letterboxed, and images that are parts of a frame.

use super::*;

/// Windows of left edge, upper edge, side and score in a model's input of 50 x 50, of `images` images.
fn run(
    images: u64,
    windows: &[[f32; 4]],
    change: impl FnOnce(&mut Params),
) -> std::result::Result<Vec<[f32; 5]>, String> {
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"windows"));
    handle.check(handle.set_params(change));
    // In this order, too: the place of frames depends on both.
    handle.check(handle.set_options(|options| {
        (options.model_width, options.model_height, options.batch) = (50.0, 50.0, 1);
    }));
    let shape = [images, windows.len() as u64 / images, 4];
    handle.run(&[tensor(c"windows", &shape, windows.as_flattened())]).map_err(|(_, text)| text)?;
    Ok(handle.detections(0).iter().map(|it| [it.x1, it.y1, it.x2, it.y2, it.score]).collect())
}

#[test]
fn a_letterbox_says_where_the_frame_is() {
    // A frame of 200 x 100 is 50 x 25 pixels of the model's input, from row 12 on.
    let windows = [[5.0, 2.0, 9.0, 0.9], [5.0, 20.0, 10.0, 0.8], [30.0, 20.0, 4.0, 0.7]];
    let letterboxed = |letterbox: Letterbox| {
        let found = run(1, &windows, |params| {
            (params.frame_size, params.letterbox) = ([200, 100], letterbox as u32);
            // In pixels of the frame.
            params.min_size = [17.0, 5.0];
        });
        found.unwrap().iter().map(|it| it[4]).collect::<Vec<_>>()
    };
    assert_eq!(letterboxed(Letterbox::Center), [0.8]);
    assert_eq!(letterboxed(Letterbox::TopLeft), [0.9, 0.8]);
    // Stretched: 4 pixels are 16 of the frame.
    assert_eq!(letterboxed(Letterbox::None), [0.9, 0.8]);
}

/// Parts of 100 x 100 pixels of a frame of 160 x 100.
const PARTS: [Region; 2] = [
    Region { left: 0, top: 0, width: 100, height: 100 },
    Region { left: 60, top: 0, width: 100, height: 100 },
];

fn set_parts(params: &mut Params) {
    params.frame_size = [160, 100];
    (params.regions, params.region_count) = (PARTS.as_ptr(), PARTS.len());
}

#[test]
fn parts_of_a_frame_are_one_image() {
    // Both parts see the object at 80 to 100; the second one also sees another.
    let windows =
        [[40.0, 10.0, 10.0, 0.9], [0.0; 4], [10.0, 10.0, 10.0, 0.8], [30.0, 5.0, 5.0, 0.7]];
    let found = run(2, &windows, set_parts).unwrap();
    assert_eq!(found, [[80.0, 20.0, 100.0, 40.0, 0.9], [120.0, 10.0, 130.0, 20.0, 0.7]]);
    // The first part cuts the object at its inner edge.
    let found = run(2, &windows, |params| {
        set_parts(params);
        params.region_edges = RegionEdges::Drop as u32;
    });
    assert_eq!(found.unwrap(), [[80.0, 20.0, 100.0, 40.0, 0.8], [120.0, 10.0, 130.0, 20.0, 0.7]]);
}

#[test]
fn wrong_parts_are_errors() {
    let windows = [[0.0; 4]; 4];
    let error = run(1, &windows, set_parts).unwrap_err();
    assert_eq!(error, "expected an image for each of 2 regions, got 1 images");
    let error = run(2, &windows, |params| {
        set_parts(params);
        params.frame_size = [150, 100];
    });
    let error = error.unwrap_err();
    assert!(error.starts_with("params: regions: the region 60,0,100,100 is not inside"), "{error}");
    let handle = Handle::new();
    let status = handle.set_params(|params| {
        set_parts(params);
        params.frame_size = [0; 2];
    });
    assert_eq!(status, Status::InvalidArgument);
    let expected =
        "params: frame_size: expected the size of the frame that has the regions, got 0 and 0";
    assert_eq!(handle.error(), expected);
    let status = handle.set_params(|params| params.letterbox = 3);
    assert_eq!(status, Status::InvalidArgument);
    assert_eq!(handle.error(), "params: letterbox: expected an NmsfilterLetterbox, got 3");
    // The size of the model's input is not known.
    handle.check(handle.set_params(|params| {
        (params.frame_size, params.letterbox) = ([160, 100], Letterbox::Center as u32);
    }));
    let (status, error) = handle.run(&[super::windows()]).unwrap_err();
    assert_eq!(status, Status::InvalidArgument);
    let expected = "params: letterbox: a letterboxed frame needs the size of the model's input; set model_width and \
                    model_height";
    assert_eq!(error, expected);
}
