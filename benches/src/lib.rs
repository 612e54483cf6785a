//! What the benches and `nmsbench` share.

pub mod measure;
pub mod workload;
