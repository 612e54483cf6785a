// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random layouts of every kind: the engine under test and the reference engine agree to the bit.

use nmsfilter_core::decoder::MAX_INPUTS;
use nmsfilter_core::engine::{Engine, Job, Reference};
use nmsfilter_core::tensor::{Storage, TensorView};

use crate::support::engines::{self, bits, masks};
use crate::support::layout_scene::LayoutScene;

/// Totals over all scenes. The test asserts that they are large enough for the comparison to be
/// meaningful.
#[derive(Debug, Default)]
pub struct Sums {
    pub scenes: usize,
    candidates: usize,
    rejected: usize,
    survivors: usize,
    columns: usize,
    pub masks: usize,
    pub mask_bits: usize,
}

/// Runs a scene on both engines.
pub fn compare(
    reference: &mut Reference,
    engine: &mut dyn Engine,
    (scene, tensors, seed): (&LayoutScene, &[TensorView<'_>], u64),
    sums: &mut Sums,
) {
    let (layout, params, places) = (&scene.layout, &scene.params, scene.places());
    let expected =
        reference.run(Job::new(tensors, layout, params, &places)).unwrap_or_else(|error| {
            panic!("seed {seed}: the reference: {error}");
        });
    if let Err(refused) = engine.supports(layout, params) {
        assert_eq!(
            engine.run(Job::new(tensors, layout, params, &places)).unwrap_err(),
            refused,
            "seed {seed}"
        );
        return;
    }
    let found = engine.run(Job::new(tensors, layout, params, &places));
    let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    sums.scenes += 1;
    assert_eq!(found.column_components, expected.column_components, "seed {seed}");
    for (index, (expected, found)) in expected.groups().zip(found.groups()).enumerate() {
        assert_eq!(
            bits(&found),
            bits(&expected),
            "seed {seed}, group {index}: {layout:#?} {params:?} {places:?}"
        );
        let columns = |columns: &[f32]| columns.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
        let (expected_columns, found_columns) = (columns(expected.columns), columns(found.columns));
        assert_eq!(found_columns, expected_columns, "seed {seed}, group {index}");
        let expected_masks = masks(&expected);
        assert_eq!(
            masks(&found),
            expected_masks,
            "seed {seed}, group {index}: {layout:#?} {params:?} {places:?}"
        );
        for mask in expected_masks.into_iter().flatten() {
            sums.masks += 1;
            sums.mask_bits +=
                mask.bytes.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
        }
        sums.candidates += expected.candidates;
        sums.rejected += expected.rejected;
        sums.survivors += expected.survivors.len();
        sums.columns += expected.columns.len();
    }
}

#[test]
fn every_engine_returns_the_bits_of_the_reference_for_random_layouts() {
    let (mut reference, mut engine) = (Reference::default(), engines::fast());
    let mut sums = Sums::default();
    for seed in 0..engines::scene_count(6_000) {
        let scene = LayoutScene::new(seed);
        compare(&mut reference, &mut *engine, (&scene, &scene.views(), seed), &mut sums);
    }
    let Sums { scenes, candidates, rejected, survivors, columns, masks, mask_bits } = sums;
    assert!(candidates > 5 * scenes && rejected > scenes / 2, "{sums:?}");
    assert!(survivors > 2 * scenes && columns > scenes, "{sums:?}");
    assert!(masks > scenes / 2 && mask_bits > 4 * masks, "{sums:?}");
}

#[test]
fn images_in_separate_allocations_give_the_bits_of_the_reference() {
    let (mut reference, mut engine) = (Reference::default(), engines::fast());
    let mut sums = Sums::default();
    for seed in 0..engines::scene_count(1_000) {
        let scene = LayoutScene::new(seed);
        let images: Vec<Vec<Storage<'_>>> =
            scene.tensors.iter().map(|tensor| tensor.image_storages()).collect();
        // Priors that all images share are in one allocation.
        let views: Vec<TensorView<'_>> = scene
            .tensors
            .iter()
            .zip(&images)
            .enumerate()
            .map(|(index, (tensor, images))| {
                let mut view = tensor.view();
                if !scene.is_shared(index) {
                    view.storage = Storage::Images(images);
                }
                view
            })
            .collect();
        compare(&mut reference, &mut *engine, (&scene, &views, seed), &mut sums);
    }
    assert!(sums.survivors > sums.scenes, "{sums:?}");
}

/// Groups of 1 to 64 images at overlapping and distant places, some without a candidate.
#[test]
fn every_engine_returns_the_bits_of_the_reference_for_random_groups_of_images() {
    let (mut reference, mut engine) = (Reference::default(), engines::fast());
    let mut sums = Sums::default();
    for seed in 0..engines::scene_count(1_500) {
        let scene = match seed % 4 {
            0 => LayoutScene::oriented_groups(seed),
            _ => LayoutScene::groups(seed),
        };
        if scene.tensors.len() > MAX_INPUTS {
            continue;
        }
        compare(&mut reference, &mut *engine, (&scene, &scene.views(), seed), &mut sums);
    }
    let Sums { scenes, candidates, survivors, columns, masks, .. } = sums;
    assert!(candidates > 20 * scenes && survivors > 5 * scenes, "{sums:?}");
    assert!(columns > scenes && masks > scenes / 3, "{sums:?}");
}
