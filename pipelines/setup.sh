# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Source this from bash, then call `setup`: it installs what the plugin needs to be built and run
# on Debian 12, Debian 13 or Ubuntu 24.04 (GStreamer from the distribution, and Rust), and puts
# cargo on PATH. What is there already is left alone; where nothing is missing, it asks the
# network and sudo for nothing.

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

# Installs the packages that are missing and Rust; further packages can be named.
setup() {
    if ! command -v apt-get >/dev/null; then
        setup_check_by_hand || return 1
    else
        local packages=("${setup_packages[@]}" "$@")
        # pkg-config and pkgconf shut each other out on some releases: either will do.
        command -v pkg-config >/dev/null || packages+=(pkg-config)
        install_packages "${packages[@]}" || return 1
    fi
    setup_rust
}

# True where commands can be run as root, by as_root.
can_be_root() {
    [ "$EUID" = 0 ] || { command -v sudo >/dev/null && sudo true 2>/dev/null; }
}

as_root() {
    if [ "$EUID" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs those of the named Debian packages that are not installed yet.
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
    # --no-remove: a missing package is no reason to take another away.
    setup_apt install --yes --no-remove --no-install-recommends "${missing[@]}"
}

setup_apt() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

setup_apt_update() {
    [ -z "$setup_apt_updated" ] || return 0
    # A foreign source that cannot be reached must not stand in the way: if a package is truly
    # not to be had, the installation says so.
    setup_apt update || echo "apt-get update had errors; going on with what there is." >&2
    setup_apt_updated=1
}

# Without apt-get nothing is installed: say what is missing.
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

# Prints cargo's arguments for the features that this machine's GStreamer has, one per line. The
# analytics library's development files are not among what setup installs: their package brings
# OpenCV and hundreds of others along.
setup_features() {
    local minor
    pkg-config --exists gstreamer-analytics-1.0 || return 0
    minor=$(pkg-config --modversion gstreamer-1.0 | cut -d . -f 2)
    features_for "$minor"
}

# Prints cargo's arguments for GStreamer 1.$1, one per line.
features_for() {
    if [ "$1" -ge 28 ]; then printf '%s\n' --features v1_28
    elif [ "$1" -ge 26 ]; then printf '%s\n' --features v1_26
    elif [ "$1" -ge 24 ]; then printf '%s\n' --features v1_24
    fi
}

# Puts a Rust new enough for the crate on PATH: the one that is there, or else rustup's stable one.
setup_rust() {
    local wanted cargo_home=${CARGO_HOME:-$HOME/.cargo}
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' \
        "$(dirname "${BASH_SOURCE[0]}")/../Cargo.toml")
    PATH=$PATH:$cargo_home/bin
    setup_rust_is "$wanted" && return 0

    echo "Installing Rust (this crate needs $wanted or later)"
    # Distributions that package rustup: there it comes with the security of their own archive.
    if ! command -v rustup >/dev/null && command -v apt-get >/dev/null && can_be_root; then
        setup_apt_update
        if apt-cache show rustup >/dev/null 2>&1; then
            # It shuts out the distribution's own rustc, which is not ours to remove.
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

# True where cargo and a compiler not older than $1 are on PATH.
setup_rust_is() {
    local version
    command -v cargo >/dev/null || return 1
    version=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) || return 1
    [ -n "$version" ] && printf '%s\n' "$1" "$version" | sort --version-sort --check=quiet
}

# Rust's official installer (https://rustup.rs), into the user's home.
setup_rustup() {
    local installer
    if command -v apt-get >/dev/null; then install_packages ca-certificates curl || return 1; fi
    installer=$(mktemp) || return 1
    # The whole file first: half an installer must not run.
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
