// SPDX-License-Identifier: MIT OR Apache-2.0
//! Execution providers in libraries of their own, which ONNX Runtime loads as plugins.
//!
//! In: the path of such a library, and the device that the user wants. Out: an ONNX Runtime session on the device.
//!
//! A library is registered when the first model needs it, and stays registered as long as the process runs. The library's
//! devices are the ones that ONNX Runtime lists in addition afterwards.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::sync::Mutex;

use ort::AsPointer;
use ort::device::Device;
use ort::memory::DeviceType;
use ort::session::Session;

use super::error::InferenceError;
use super::library::OnnxRuntime;
use super::missing_library;
use super::provider::{self, Provider};
use super::{CAT, InferenceOptions};
use gstnmsfilter::elements::lock;

/// The minor version of ONNX Runtime from which on provider libraries are supported.
const MINOR_VERSION: u32 = 24;

/// The device on which a model runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDevice {
    /// The value of the property that selects the device, the provider's name, and the device's vendor.
    pub description: String,
    /// True if the node that reads the model's input runs on the device. If it is false, the provider may run other
    /// nodes, or none: ONNX Runtime does not tell in the versions that are supported.
    pub runs_first_node: bool,
}

/// Opens the model on a device of a provider library.
///
/// # Errors
/// If no library is given, if ONNX Runtime is too old, if the library cannot be used or does not offer the device, if
/// the provider rejects its options, or if the file is not a model.
pub fn open(
    library: &OnnxRuntime,
    options: &InferenceOptions,
    changed: Option<&[u8]>,
) -> Result<(Session, PluginDevice), InferenceError> {
    let path = options.provider_library.as_ref().ok_or_else(|| {
        InferenceError::Library(
            "provider=plugin needs provider-library: set it to a library with an execution \
             provider for ONNX Runtime"
                .to_owned(),
        )
    })?;
    let (device, description) = device(library, path, options.provider_device.as_deref())?;
    let name = device.ep()?.to_owned();
    // The binding expects keys with the provider's name.
    let with_name = |(key, value): &(String, String)| (format!("{name}.{key}"), value.clone());
    let with_names: Vec<_> = options.provider_options.iter().map(with_name).collect();
    let rejected = |error: &ort::Error| {
        InferenceError::provider(Provider::Plugin, &options.provider_options, error)
    };
    let builder = provider::builder(library, options)?
        .with_devices([device], Some(&with_names))
        .map_err(|error| rejected(&error.into()))?;
    match provider::commit(builder, &options.model, changed) {
        Ok(session) => {
            let runs_first_node = provider_of_input(&session)?.as_deref() == Some(&*name);
            Ok((session, PluginDevice { description, runs_first_node }))
        }
        // The provider is created together with the session. If the CPU can open the model, the provider failed.
        Err(error) => match provider::open_on_cpu(library, options, changed) {
            Ok(_) => Err(rejected(&error)),
            Err(invalid_model) => Err(invalid_model),
        },
    }
}

/// Returns the name of the provider that runs the node that reads the model's input; `None` if ONNX Runtime does not
/// know it. Devices cannot be compared: of several that a provider has for one processor, ONNX Runtime names the first.
fn provider_of_input(session: &Session) -> Result<Option<String>, InferenceError> {
    let mut device = null();
    // SAFETY: the session exists and has one input, and `device` is valid for writes of one pointer.
    let result = unsafe {
        let status = (ort::api().SessionGetEpDeviceForInputs)(session.ptr(), &mut device, 1);
        ort::Error::result_from_status(status)
    };
    result?;
    if device.is_null() {
        return Ok(None);
    }
    // SAFETY: the environment owns the device, and the device owns its name, which is a C string.
    let name = unsafe { CStr::from_ptr((ort::api().EpDevice_EpName)(device)) };
    Ok(Some(name.to_string_lossy().into_owned()))
}

/// Returns the device of the library at `path` that is wanted, or its first one, with its description.
fn device<'e>(
    library: &'e OnnxRuntime,
    path: &Path,
    wanted: Option<&str>,
) -> Result<(Device<'e>, String), InferenceError> {
    if let Some(version) = version(library).filter(|version| is_too_old(version)) {
        return Err(InferenceError::Library(format!(
            "provider=plugin needs ONNX Runtime 1.{MINOR_VERSION} or later, but {:?} has version \
             {version}; install a newer one, or set provider=cpu",
            library.path
        )));
    }
    let addresses = register(library, path)?;
    let devices = library.environment.devices();
    let (mut kinds, mut descriptions) = (Vec::new(), Vec::new());
    for device in devices.filter(|device| addresses.contains(&address(device))) {
        let hardware = device.hardware_device();
        let kind = match hardware.ty() {
            DeviceType::CPU => "cpu",
            DeviceType::GPU => "gpu",
            DeviceType::NPU => "npu",
            DeviceType::FPGA => "fpga",
        };
        let number = kinds.iter().filter(|&&other| other == kind).count();
        let name = format!("{kind}:{number}");
        let description = format!("{name} ({}, {})", device.ep()?, hardware.vendor()?);
        let is_wanted = wanted.is_none_or(|wanted| {
            let first = if wanted.contains(':') { "" } else { ":0" };
            name.eq_ignore_ascii_case(&format!("{wanted}{first}"))
        });
        if is_wanted {
            return Ok((device, description));
        }
        kinds.push(kind);
        descriptions.push(description);
    }
    let wanted = wanted.filter(|_| !descriptions.is_empty());
    Err(InferenceError::Library(match wanted {
        Some(wanted) => format!(
            "provider-device={wanted}: {path:?} does not offer this device on this machine; set one \
             of: {}",
            descriptions.join(", ")
        ),
        None => format!(
            "provider-library={path:?} offers no device on this machine, which has a CPU from {}; \
             expected hardware and drivers that the provider supports: install them, or set \
             provider=cpu",
            cpu_vendor(library)
        ),
    }))
}

/// Registers the library, unless this has been done. Returns the addresses of its devices.
fn register(library: &OnnxRuntime, path: &Path) -> Result<Vec<usize>, InferenceError> {
    static REGISTERED: Mutex<Vec<(PathBuf, Vec<usize>)>> = Mutex::new(Vec::new());
    // ONNX Runtime searches relative paths in its library's folder.
    let file = path.canonicalize().map_err(|problem| {
        InferenceError::Library(format!(
            "provider-library={path:?} cannot be read: {problem}; set it to a provider's library, \
             such as libonnxruntime_providers_openvino_plugin.so in the folder of the Python \
             package onnxruntime_ep_openvino"
        ))
    })?;
    let mut registered = lock(&REGISTERED);
    if let Some((_, devices)) = registered.iter().find(|(other, _)| *other == file) {
        return Ok(devices.clone());
    }
    let addresses = || library.environment.devices().map(|device| address(&device));
    let before: Vec<_> = addresses().collect();
    library.environment.register_ep_library(registration_name(path), &file).map_err(|error| {
        let advice = missing_library::advice(&error.to_string());
        InferenceError::Library(format!(
            "provider-library={path:?} cannot be loaded: {error}; expected a plugin execution \
             provider of ONNX Runtime, and the libraries that it needs: install {advice}"
        ))
    })?;
    let devices: Vec<_> = addresses().filter(|address| !before.contains(address)).collect();
    gst::info!(CAT, "{file:?} offers {} devices", devices.len());
    registered.push((file, devices.clone()));
    Ok(devices)
}

/// Returns the name under which the library is registered: the name of the file. Some libraries call their provider by
/// this name.
fn registration_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split(".so").next().unwrap_or_default();
    name.strip_prefix("lib").unwrap_or(name).to_owned()
}

fn address(device: &Device<'_>) -> usize {
    device.ptr().addr()
}

/// Returns the device of ONNX Runtime's own CPU provider.
fn cpu(library: &OnnxRuntime) -> Option<Device<'_>> {
    library.environment.devices().find(|device| device.ep().ok() == Some("CPUExecutionProvider"))
}

fn cpu_vendor(library: &OnnxRuntime) -> String {
    let vendor = cpu(library).and_then(|device| device.hardware_device().vendor().ok());
    vendor.filter(|vendor| !vendor.is_empty()).unwrap_or("an unknown vendor").to_owned()
}

/// Returns ONNX Runtime's version, which is also its CPU provider's version.
pub(super) fn version(library: &OnnxRuntime) -> Option<String> {
    let device = cpu(library)?;
    let api = ort::api();
    // SAFETY: the environment owns the device, the device owns its metadata, and the key is a C string.
    let version = unsafe {
        let metadata = (api.EpDevice_EpMetadata)(device.ptr());
        (api.GetKeyValue)(metadata, c"version".as_ptr())
    };
    if version.is_null() {
        return None;
    }
    // SAFETY: the value is a C string that the metadata owns.
    let version = unsafe { CStr::from_ptr(version) };
    Some(version.to_string_lossy().into_owned())
}

/// Returns whether provider libraries need a later version of ONNX Runtime. An unknown form of the version is accepted.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) < (1, MINOR_VERSION),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_1_24_are_too_old() {
        let is_old = ["1.23.2", "1.9.0", "0.30.1", "1.24.0", "1.31.1", "2.0.0", "nightly"]
            .map(|version| (version, is_too_old(version)));
        let expected = [
            ("1.23.2", true),
            ("1.9.0", true),
            ("0.30.1", true),
            ("1.24.0", false),
            ("1.31.1", false),
            ("2.0.0", false),
            ("nightly", false),
        ];
        assert_eq!(is_old, expected);
    }

    #[test]
    fn a_library_is_registered_under_the_name_of_its_file() {
        let name = |path: &str| registration_name(Path::new(path));
        assert_eq!(name("/a/libonnxruntime_providers_x.so"), "onnxruntime_providers_x");
        assert_eq!(name("libonnxruntime_providers_x.so.1.8.1"), "onnxruntime_providers_x");
        assert_eq!(name("/a/provider"), "provider");
    }
}
