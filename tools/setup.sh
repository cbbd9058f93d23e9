# For ./run and ./test: names and installs the packages that are missing. Sourced by bash, at the root of the tree.

build_packages=(cmake ninja-build g++ pkg-config libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libpcre2-dev libhwy-dev libcpp-httplib-dev
    qt6-base-dev qt6-tools-dev qt6-tools-dev-tools qt6-l10n-tools libqt6sql6-sqlite librsvg2-bin fonts-dejavu-core
    clang-19 lld-19)  # the code for AMD cards
fuzz_packages=(clang-19)
windows_packages=(g++-mingw-w64-x86-64-posix dpkg-dev xz-utils)
client_packages=(nodejs npm)  # the server's tests run the official clients
wine_packages=(wine64 fonts-wine)

configure_options=()

say() { echo "== $*" >&2; }

# install_missing PACKAGE…: says what is missing and installs it, as root or through sudo. Output goes to standard error.
install_missing() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "This is not a Debian system: packages are not installed here. Needed are the like of: $*"
        return 0
    fi
    local missing=() root=() package
    local installed
    installed=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' "$@" 2>/dev/null || true)"
    for package; do
        [[ $installed == *" $package=installed "* ]] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "Installing what is missing: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            say "Installing needs root: as root, run  apt-get install ${missing[*]}"
            return 1
        fi
        root=(sudo)
    fi
    "${root[@]}" apt-get -q update >&2
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" >&2
}

# add_client_packages: to `packages`, where node or npm is missing; one that is there may be of another source than the distribution.
add_client_packages() {
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then packages+=("${client_packages[@]}"); fi
}

# build PRESET TARGET…: configures where that was not done yet, with the options of configure_options, and builds; says so only where there
# is something to do.
# Output goes to standard error: on a terminal ninja's one line, else only what went wrong.
build() {
    local preset=$1 folder=build/$1
    shift
    if [ ! -f "$folder/build.ninja" ]; then
        say "Configuring $folder"
        local log
        if ! log=$(cmake --preset "$preset" "${configure_options[@]}" 2>&1); then
            echo "$log" >&2
            return 1
        fi
    fi
    local quiet=()
    [ -t 2 ] || quiet=(--quiet)
    if ! ninja -C "$folder" -n "$@" | grep -q 'ninja: no work to do'; then
        say "Building $folder"
        ninja -C "$folder" "${quiet[@]}" "$@" >&2
    fi
}
