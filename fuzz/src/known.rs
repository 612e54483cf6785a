//! Defects that are known and not mended yet: what is `false` here is not generated.
//!
//! When one is mended, set its switch to `true`; when all are, this file goes.

/// Strings that are not UTF-8 in properties: the elements abort.
pub const NON_UTF8_PROPERTIES: bool = false;

/// A region's type that is not UTF-8: `roioverlay` reads it unchecked.
pub const NON_UTF8_REGION_TYPES: bool = false;

/// Strings that are not UTF-8 in the structure of `NmsFilterTensor`.
pub const NON_UTF8_TENSOR_FIELDS: bool = false;

/// Label files that are devices or pipes.
pub const SPECIAL_LABEL_FILES: bool = false;

/// `model-width` set without `model-height`, or the other way round, while playing: what the element
/// does then is to change, so it is run but not compared.
pub const HALF_A_MODEL_WHILE_PLAYING: bool = false;

/// Layouts that do not fit the tensors: engines do not check them.
pub const UNCHECKED_LAYOUTS: bool = false;
