// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures of GStreamer's analytics library that are read or written directly, as its headers declare them.
#![allow(missing_docs, reason = "GStreamer's headers document them")]

use std::ffi::{c_int, c_uint, c_void};

use gst::ffi::{GstBuffer, GstEvent, GstMeta, GstMiniObject};
use gst::glib::ffi::GQuark;

/// `GstAnalyticsRelationMeta`, of which only the beginning is declared: its other fields are private, and differ from
/// version to version.
#[derive(Debug)]
#[repr(C)]
pub struct GstAnalyticsRelationMeta {
    pub meta: GstMeta,
}

/// `GstAnalyticsMtd`, and the structures of all kinds, such as `GstAnalyticsODMtd` (1.24).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GstAnalyticsMtd {
    pub id: c_uint,
    pub meta: *mut GstAnalyticsRelationMeta,
}

/// `GstAnalyticsRelationMetaInitParams` (1.24).
#[derive(Debug)]
#[repr(C)]
pub struct GstAnalyticsRelationMetaInitParams {
    pub initial_relation_order: usize,
    pub initial_buf_size: usize,
}

/// `GstTensor` (1.26).
#[derive(Debug)]
#[repr(C)]
pub struct GstTensor {
    pub id: GQuark,
    pub layout: c_int,
    pub data_type: c_int,
    pub data: *mut GstBuffer,
    pub dims_order: c_int,
    pub num_dims: usize,
    pub dims: [usize; 0],
}

/// `GstTensorMeta` (1.26).
#[derive(Debug)]
#[repr(C)]
pub struct GstTensorMeta {
    pub meta: GstMeta,
    pub num_tensors: usize,
    pub tensors: *mut *mut GstTensor,
}

/// `GstAnalyticsBatchMeta` (1.28).
#[derive(Debug)]
#[repr(C)]
pub struct GstAnalyticsBatchMeta {
    pub meta: GstMeta,
    pub streams: *mut GstAnalyticsBatchStream,
    pub n_streams: usize,
}

/// `GstAnalyticsBatchStream` (1.28).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GstAnalyticsBatchStream {
    pub index: c_uint,
    pub sticky_events: *mut *mut GstEvent,
    pub n_sticky_events: usize,
    pub objects: *mut *mut GstMiniObject,
    pub n_objects: usize,
    pub padding: [*mut c_void; 4],
}
