use pyo3::prelude::*;
#[pyfunction]
#[pyo3(signature = (boxes, scores, iou_threshold, *, method=None))]
fn nms(boxes: Bound<'_, PyAny>, scores: Bound<'_, PyAny>, iou_threshold: f32, method: Option<&str>) -> usize { let _ = (boxes, scores, iou_threshold, method); 1 }
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> { m.add_function(wrap_pyfunction!(nms, m)?) }
