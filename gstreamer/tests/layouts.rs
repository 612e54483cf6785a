// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structures that are read directly have the layouts of GStreamer's headers: layouts.txt was printed by layouts.c with
//! those of 1.28.8, on x86-64. The lines for structures of 1.24 and 1.26 are equal with the headers of 1.24 and 1.26.2.

use std::mem::offset_of;

use gst_newer::ffi::*;

#[test]
#[cfg(target_pointer_width = "64")]
fn structures_have_the_layouts_of_the_headers() {
    let mut lines = Vec::new();
    macro_rules! layout {
        ($($structure:ident: $($field:ident)*;)*) => {$(
            lines.push(format!("{} {}", stringify!($structure), size_of::<$structure>()));
            $(lines.push(format!(
                "{}.{} {}", stringify!($structure), stringify!($field), offset_of!($structure, $field)
            ));)*
        )*};
    }
    layout! {
        GstAnalyticsMtd: id meta;
        GstAnalyticsRelationMetaInitParams: initial_relation_order initial_buf_size;
        GstTensor: id layout data_type data dims_order num_dims dims;
        GstTensorMeta: meta num_tensors tensors;
        GstAnalyticsBatchMeta: meta streams n_streams;
        GstAnalyticsBatchStream: index sticky_events n_sticky_events objects n_objects padding;
    }
    assert_eq!(lines, include_str!("layouts.txt").lines().collect::<Vec<_>>());
}
