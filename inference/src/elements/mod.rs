// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element.

pub mod ortinference;
