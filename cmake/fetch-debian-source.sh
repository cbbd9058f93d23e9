#!/bin/bash
# Fetches source packages of the distribution, of the release that this machine's apt is set up for, and unpacks them:
#
#   fetch-debian-source.sh FOLDER PACKAGE…      gives FOLDER/PACKAGE, one for each
#
# apt checks signatures and sums as for any package. The machine's own package lists and settings stay as they are: the entries
# for sources are derived from its entries for binaries and live in FOLDER, as do the lists. No root needed.
set -euo pipefail
folder=$1
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
missing=()
for package; do
    [ -d "$folder/$package" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

apt=$folder/.apt
rm -rf "$apt"
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
chmod 755 "$folder" "$apt"
shopt -s nullglob
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$list" ] && sed -nE 's/^deb[[:space:]]/deb-src /p' "$list" >>"$apt/parts/sources.list"
done
for list in /etc/apt/sources.list.d/*.sources; do
    sed -E 's/^Types:.*/Types: deb-src/' "$list" >"$apt/parts/${list##*/}"
done
options=(-q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists"
    -o Dir::Cache="$apt/cache" -o Acquire::Languages=none -o Acquire::Retries=3)
# One entry of the machine may lack sources: whether the packages can be had decides.
apt-get "${options[@]}" update >"$apt/log" 2>&1 || true
for package in "${missing[@]}"; do
    # The newest first; a mirror may not have all that its lists name.
    versions=$(apt-cache "${options[@]}" showsrc "$package" 2>>"$apt/log" | sed -n 's/^Version: //p' | uniq)
    for version in $versions; do
        rm -rf "$apt/unpack"
        mkdir "$apt/unpack"
        if (cd "$apt/unpack" && apt-get "${options[@]}" source --only-source "$package=$version") >>"$apt/log" 2>&1; then
            mv "$apt"/unpack/*/ "$folder/$package"
            echo "Fetched the source package $package $version"
            break
        fi
    done
    if [ ! -d "$folder/$package" ]; then
        tail -n 15 "$apt/log" >&2
        echo "The source package $package could not be fetched with apt-get." >&2
        exit 1
    fi
done
