# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Source this file from bash, then call `setup`. It installs what is needed to build and run the
# plugin on Debian 12, Debian 13 or Ubuntu 24.04: GStreamer from the distribution, and Rust. It puts
# cargo on PATH. It does not change what is installed already. If nothing is missing, it uses
# neither the network nor sudo.

setup_packages=(
    gcc
    libc6-dev
    libgstreamer1.0-dev
    libgstreamer-plugins-base1.0-dev
    gstreamer1.0-tools
    gstreamer1.0-plugins-base
    gstreamer1.0-plugins-good
)
setup_apt_updated=

# Installs Rust and the missing packages. More packages can be given as arguments.
setup() {
    if ! command -v apt-get >/dev/null; then
        setup_check_by_hand || return 1
    else
        local packages=("${setup_packages[@]}" "$@")
        # On some releases, pkg-config and pkgconf conflict. Either is sufficient.
        command -v pkg-config >/dev/null || packages+=(pkg-config)
        install_packages "${packages[@]}" || return 1
    fi
    setup_rust
}

# Succeeds if as_root can run commands as root.
can_be_root() {
    [ "$EUID" = 0 ] || { command -v sudo >/dev/null && sudo true 2>/dev/null; }
}

as_root() {
    if [ "$EUID" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs the named Debian packages that are not installed yet.
install_packages() {
    local package missing=()
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
        installed*) ;;
        *) missing+=("$package") ;;
        esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! can_be_root; then
        echo "These packages are missing, and only root can install them (there is no usable sudo):" >&2
        echo "    apt-get install --no-install-recommends ${missing[*]}" >&2
        return 1
    fi
    echo "Installing ${missing[*]}"
    setup_apt_update || return 1
    # With --no-remove, installing a package never removes another one.
    setup_apt install --yes --no-remove --no-install-recommends "${missing[@]}"
}

setup_apt() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

setup_apt_update() {
    [ -z "$setup_apt_updated" ] || return 0
    # A foreign source that cannot be reached must not stop the setup. If a package is really
    # unavailable, its installation reports this.
    setup_apt update || echo "apt-get update had errors; going on with what there is." >&2
    setup_apt_updated=1
}

# Without apt-get nothing can be installed, so this prints what is missing.
setup_check_by_hand() {
    local command missing=()
    for command in cc pkg-config gst-launch-1.0; do
        command -v "$command" >/dev/null || missing+=("$command")
    done
    pkg-config --atleast-version=1.20 gstreamer-1.0 gstreamer-base-1.0 gstreamer-video-1.0 \
        gstreamer-app-1.0 gstreamer-check-1.0 2>/dev/null ||
        missing+=("the development files of GStreamer 1.20 or later and its base plugins")
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "This system has no apt-get, so please install by hand what is missing:" >&2
    printf '    %s\n' "${missing[@]}" >&2
    return 1
}

# Puts a Rust that is new enough for the crate on PATH: the installed one, or else the stable
# version of rustup.
setup_rust() {
    local wanted cargo_home=${CARGO_HOME:-$HOME/.cargo}
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' \
        "$(dirname "${BASH_SOURCE[0]}")/../Cargo.toml")
    PATH=$PATH:$cargo_home/bin
    setup_rust_is "$wanted" && return 0

    echo "Installing Rust (this crate needs $wanted or later)"
    # If the distribution has a package of rustup, it is preferred, because the distribution's
    # archive is authenticated.
    if ! command -v rustup >/dev/null && command -v apt-get >/dev/null && can_be_root; then
        setup_apt_update
        if apt-cache show rustup >/dev/null 2>&1; then
            # The package conflicts with the distribution's rustc, which must not be removed.
            install_packages rustup || echo "Using Rust's own installer instead." >&2
        fi
    fi
    if command -v rustup >/dev/null; then
        rustup toolchain install stable --profile minimal --component rustfmt --component clippy \
            --no-self-update || return 1
    else
        setup_rustup || return 1
    fi
    PATH=$(dirname "$(rustup which --toolchain stable cargo)"):$PATH
    setup_rust_is "$wanted" && return 0
    echo "Rust $wanted or later is needed; after the installation there is: $(rustc --version)" >&2
    return 1
}

# Succeeds if cargo, and a compiler that is not older than $1, are on PATH.
setup_rust_is() {
    local version
    command -v cargo >/dev/null || return 1
    version=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) || return 1
    [ -n "$version" ] && printf '%s\n' "$1" "$version" | sort --version-sort --check=quiet
}

# Runs Rust's official installer (https://rustup.rs), which installs into the user's home.
setup_rustup() {
    local installer
    if command -v apt-get >/dev/null; then install_packages ca-certificates curl || return 1; fi
    installer=$(mktemp) || return 1
    # The whole file is downloaded first, so that an incomplete installer never runs.
    if ! curl --proto '=https' --tlsv1.2 --silent --show-error --fail --location \
        --output "$installer" https://sh.rustup.rs; then
        rm -f "$installer"
        echo "Rust's installer could not be fetched. Install Rust from https://rustup.rs and try again." >&2
        return 1
    fi
    sh "$installer" -y --profile minimal --component rustfmt --component clippy \
        --default-toolchain stable --no-modify-path </dev/null || { rm -f "$installer"; return 1; }
    rm -f "$installer"
    echo "Rust is installed. To use it in your own shell: . \"$cargo_home/env\""
}
