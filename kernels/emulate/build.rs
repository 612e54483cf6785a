//! Compiles the kernels as host C++.

fn main() {
    println!("cargo::rerun-if-changed=..");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("runner.cpp")
        // Tests run thousands of scenes.
        .opt_level(2)
        .flag("-ffp-contract=off")
        .flag("-Wno-unknown-pragmas")
        .compile("emulated_kernels");
}
