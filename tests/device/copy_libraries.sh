#!/bin/sh
# copy_libraries.sh FOLDER PROGRAM…: the libraries that the programs are linked to, into FOLDER; the C library excepted, which fits the
# loader of the machine.
set -eu
folder=$1
shift
mkdir -p "$folder"
for program; do ldd "$program"; done | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r library; do
    case ${library##*/} in
    libc.so* | libm.so* | libpthread.so* | libdl.so* | librt.so* | ld-linux*) ;;
    *) cp "$library" "$folder/" ;;
    esac
done
