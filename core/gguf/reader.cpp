#include "core/gguf/reader.h"

#include <bit>

#include "core/gguf/cursor.h"
#include "core/gguf/tensor_reader.h"
#include "core/gguf/value_reader.h"

namespace headroom::gguf {
namespace {

// Magic and version. Returns the version.
Result<std::uint32_t> read_preamble(Cursor& cursor, const std::string& name) {
    if (cursor.remaining() == 0) return fail(ErrorKind::invalid_file, "{}: is not a GGUF file: it is empty", name);
    HR_TRY(const auto magic, cursor.take(4));
    const std::string_view letters(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (letters == "lmgg" || letters == "tjgg" || letters == "fmgg" || letters == "algg") {
        return fail(ErrorKind::unsupported, "{}: is in a format older than GGUF; get the model as a GGUF file", name);
    }
    if (letters != "GGUF") {
        return fail(ErrorKind::invalid_file, "{}: is not a GGUF file: it begins with {}, \"GGUF\" is expected", name, quote(letters));
    }
    HR_TRY(const auto version, cursor.number<std::uint32_t>());
    // Versions are small numbers: only the other byte order has the low half empty.
    if (version != 0 && (version & 0xFFFF) == 0) {
        return fail(ErrorKind::unsupported, "{}: is a big-endian GGUF file, made for another kind of processor; get the "
                    "little-endian one", name);
    }
    if (version != 2 && version != 3) {
        return cursor.refuse_as(ErrorKind::unsupported, fmt::format("the GGUF version is {}, but 2 and 3 can be read", version));
    }
    return version;
}

}  // namespace

Result<std::uint64_t> read_alignment(const Metadata& metadata, const std::string& name) {
    const Value* value = metadata.find("general.alignment");
    if (!value) return 32;
    if (value->type != ValueType::u32) {
        return fail(ErrorKind::invalid_file, "{}: in metadata \"general.alignment\": its type is {}, uint32 is expected", name,
                    to_string(value->type));
    }
    const std::uint64_t alignment = std::get<std::uint64_t>(value->data);
    if (alignment < 8 || !std::has_single_bit(alignment)) {
        return fail(ErrorKind::invalid_file, "{}: in metadata \"general.alignment\": it is {}, a power of two of 8 or more is expected",
                    name, alignment);
    }
    return alignment;
}

Result<Part> read_part(std::span<const std::byte> bytes, const std::string& name, std::uint16_t shard) {
    Cursor cursor(bytes, name);
    HR_TRY(const auto version, read_preamble(cursor, name));
    HR_TRY(const auto tensor_count, cursor.number<std::uint64_t>());
    HR_TRY(const auto metadata_count, cursor.number<std::uint64_t>());
    HR_TRY(auto metadata, read_metadata(cursor, metadata_count, name));
    HR_TRY(const auto alignment, read_alignment(metadata, name));
    HR_TRY(auto tensors, read_tensors(cursor, tensor_count, alignment, shard));
    return Part{version, std::move(metadata), std::move(tensors)};
}

}  // namespace headroom::gguf
