// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library that is missing when a provider of ONNX Runtime cannot be loaded.
//!
//! In: ONNX Runtime's message. Out: what to install.

/// The end of the dynamic loader's message, which comes after the name of the missing library.
const MISSING: &str = ": cannot open shared object file";

/// The beginnings of libraries' names, and the product that has them.
const PRODUCTS: [(&str, &str); 5] = [
    ("libnvinfer", "TensorRT"),
    ("libnvonnxparser", "TensorRT"),
    ("libnvdla_compiler", "JetPack's compiler for DLA"),
    ("libcudnn", "cuDNN"),
    ("libcu", "CUDA"),
];

/// Returns what to install, as the object of "install".
pub fn advice(problem: &str) -> String {
    let name =
        problem.split_once(MISSING).and_then(|(before, _)| before.split([' ', '/']).next_back());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return "what is missing".to_owned();
    };
    match PRODUCTS.iter().find(|(begins, _)| name.starts_with(begins)) {
        Some((_, product)) => format!("{name}, which is part of {product}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_library_is_named_with_its_product() {
        let of_tensorrt = |name: &str| {
            format!(
                "Failed to load library /a/libonnxruntime_providers_tensorrt.so with error: {name}: cannot open shared \
                 object file: No such file or directory"
            )
        };
        for (name, product) in [
            ("libnvinfer.so.10", "TensorRT"),
            ("libnvdla_compiler.so", "JetPack's compiler for DLA"),
            ("libcudnn.so.9", "cuDNN"),
            ("libcublas.so.13", "CUDA"),
        ] {
            let expected = format!("{name}, which is part of {product}");
            assert_eq!(advice(&of_tensorrt(name)), expected);
        }
        assert_eq!(advice(&of_tensorrt("libtbb.so.12")), "libtbb.so.12");
    }

    #[test]
    fn other_problems_have_no_name() {
        let problem = "CUDA failure 35: CUDA driver version is insufficient";
        assert_eq!(advice(problem), "what is missing");
    }
}
