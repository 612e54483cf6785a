//! Decoders: which one reads which tensors, and the error where none or several do.

#[path = "../support/mod.rs"]
mod support;

mod choice;
mod yolox;
