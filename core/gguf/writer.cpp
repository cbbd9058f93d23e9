#include "core/gguf/writer.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <utility>

#include "core/base/paths.h"
#include "core/base/quote.h"
#include "core/gguf/file.h"
#include "core/gguf/split.h"

namespace headroom::gguf {
namespace {

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::size_t end = out.size();
    out.resize(end + bytes.size());  // GCC 12 warns wrongly about insert() here when it optimizes
    std::memcpy(out.data() + end, bytes.data(), bytes.size());
}

template <class T>
void append_number(std::vector<std::byte>& out, T value) {
    append(out, std::as_bytes(std::span(&value, 1)));
}

void append_string(std::vector<std::byte>& out, std::string_view text) {
    append_number<std::uint64_t>(out, text.size());
    append(out, std::as_bytes(std::span(text)));
}

void append_type(std::vector<std::byte>& out, ValueType type) { append_number(out, static_cast<std::uint32_t>(type)); }

void append_array(std::vector<std::byte>& out, const Array& array) {
    append_type(out, array.element);
    append_number(out, array.count);
    append(out, array.numbers);
    for (const auto text : array.strings) append_string(out, text);
    for (const Array& inner : array.arrays) append_array(out, inner);
}

// The integer or float in `value`, narrowed to the type in the file.
template <class T>
void append_scalar(std::vector<std::byte>& out, const Value& value) {
    const auto narrow = [&](auto number) { append_number(out, static_cast<T>(number)); };
    if (const auto* number = std::get_if<std::uint64_t>(&value.data)) narrow(*number);
    if (const auto* number = std::get_if<std::int64_t>(&value.data)) narrow(*number);
    if (const auto* number = std::get_if<double>(&value.data)) narrow(*number);
}

void append_value(std::vector<std::byte>& out, const Value& value) {
    switch (value.type) {
        case ValueType::u8: append_scalar<std::uint8_t>(out, value); break;
        case ValueType::i8: append_scalar<std::int8_t>(out, value); break;
        case ValueType::u16: append_scalar<std::uint16_t>(out, value); break;
        case ValueType::i16: append_scalar<std::int16_t>(out, value); break;
        case ValueType::u32: append_scalar<std::uint32_t>(out, value); break;
        case ValueType::i32: append_scalar<std::int32_t>(out, value); break;
        case ValueType::u64: append_scalar<std::uint64_t>(out, value); break;
        case ValueType::i64: append_scalar<std::int64_t>(out, value); break;
        case ValueType::f32: append_scalar<float>(out, value); break;
        case ValueType::f64: append_scalar<double>(out, value); break;
        case ValueType::boolean: append_number<std::uint8_t>(out, std::get<bool>(value.data) ? 1 : 0); break;
        case ValueType::string: append_string(out, std::get<std::string_view>(value.data)); break;
        case ValueType::array: append_array(out, std::get<Array>(value.data)); break;
    }
}

std::uint64_t padding(std::uint64_t size, std::uint64_t alignment) { return (alignment - size % alignment) % alignment; }

}  // namespace

void Writer::add_bytes(std::string_view key, ValueType type, std::span<const std::byte> value) {
    append_string(metadata_, key);
    append_type(metadata_, type);
    append(metadata_, value);
    ++metadata_count_;
}

void Writer::add(std::string_view key, std::string_view text) { add(key, Value{ValueType::string, text}); }

void Writer::add(std::string_view key, const Value& value) {
    std::vector<std::byte> bytes;
    append_value(bytes, value);
    add_bytes(key, value.type, bytes);
}

void Writer::add_strings(std::string_view key, std::span<const std::string_view> strings) {
    add(key, Value{ValueType::array, Array{ValueType::string, strings.size(), {}, {strings.begin(), strings.end()}, {}}});
}

void Writer::set_alignment(std::uint32_t alignment) {
    alignment_ = alignment;
    add("general.alignment", alignment);
}

void Writer::add_tensor(std::string name, TensorType type, std::vector<std::uint64_t> shape, std::vector<std::byte> data) {
    tensors_.push_back({std::move(name), type, std::move(shape), std::move(data)});
}

// Everything before the data, padded to where they begin.
std::vector<std::byte> Writer::tables(std::span<const TensorData> tensors) const {
    std::vector<std::byte> out;
    append(out, std::as_bytes(std::span("GGUF", 4)));
    append_number(out, version_);
    append_number<std::uint64_t>(out, tensors.size());
    append_number(out, metadata_count_);
    append(out, metadata_);
    std::uint64_t offset = 0;
    for (const TensorData& tensor : tensors) {
        append_string(out, tensor.name);
        append_number(out, static_cast<std::uint32_t>(tensor.shape.size()));
        for (const std::uint64_t size : tensor.shape) append_number(out, size);
        append_number(out, static_cast<std::uint32_t>(tensor.type));
        append_number(out, offset);
        offset += tensor.data.size() + padding(tensor.data.size(), alignment_);
    }
    out.resize(out.size() + padding(out.size(), alignment_));
    return out;
}

Result<std::vector<std::byte>> Writer::bytes() const {
    if (alignment_ == 0) return fail(ErrorKind::invalid_argument, "an alignment of 0 makes no GGUF file");
    std::vector<std::byte> out = tables(tensors_);
    for (const TensorData& tensor : tensors_) {
        append(out, tensor.data);
        out.resize(out.size() + padding(tensor.data.size(), alignment_));
    }
    auto file = File::parse(out, "the file to be written");
    if (!file) return fail(ErrorKind::invalid_argument, "{}", file.error().message);
    HR_CHECK(check(*file));
    return out;
}

Result<> Writer::write(const std::filesystem::path& path) const {
    HR_CHECK(write_file(path, tensors_));
    HR_TRY(const auto file, File::open(path));
    return check(file);
}

Result<std::vector<std::filesystem::path>> Writer::write_split(const std::filesystem::path& folder, const std::string& prefix,
                                                               std::span<const std::size_t> tensors_per_file) const {
    const std::size_t count = tensors_per_file.size();
    if (count == 0 || count > UINT16_MAX ||
        std::accumulate(tensors_per_file.begin(), tensors_per_file.end(), std::size_t{0}) != tensors_.size()) {
        return fail(ErrorKind::invalid_argument, "the files of a split model must hold its {} tensors between them", tensors_.size());
    }
    std::vector<std::filesystem::path> paths;
    std::span<const TensorData> rest = tensors_;
    for (std::size_t i = 0; i < count; ++i) {
        // The first file has the model's metadata, the others only what makes them parts of it.
        Writer part(version_);
        if (i == 0) {
            part.metadata_ = metadata_;
            part.metadata_count_ = metadata_count_;
            part.alignment_ = alignment_;
        } else if (alignment_ != 32) {
            part.set_alignment(alignment_);
        }
        part.add("split.no", static_cast<std::uint16_t>(i));
        part.add("split.count", static_cast<std::uint16_t>(count));
        part.add("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
        paths.push_back(folder / from_utf8(split_name(prefix, static_cast<std::uint32_t>(i + 1), static_cast<std::uint32_t>(count))));
        HR_CHECK(part.write_file(paths.back(), rest.first(tensors_per_file[i])));
        rest = rest.subspan(tensors_per_file[i]);
    }
    HR_TRY(const auto file, File::open(paths.front()));
    HR_CHECK(check(file));
    return paths;
}

Result<> Writer::write_file(const std::filesystem::path& path, std::span<const TensorData> tensors) const {
    if (alignment_ == 0) return fail(ErrorKind::invalid_argument, "an alignment of 0 makes no GGUF file");
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    const std::string zeros(alignment_, '\0');
    const auto put = [&out](std::span<const std::byte> bytes) {
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    put(tables(tensors));
    for (const TensorData& tensor : tensors) {
        put(tensor.data);
        out.write(zeros.data(), static_cast<std::streamsize>(padding(tensor.data.size(), alignment_)));
    }
    out.close();
    if (!out) return fail(ErrorKind::io, "{}: cannot be written", printable(to_utf8(path)));
    return {};
}

// The reader has accepted the file; it must also give out the same tensors.
Result<> Writer::check(const File& file) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const TensorData& written = tensors_[i];
        const auto read = file.tensors()[i].data;
        if (std::ranges::equal(read, written.data)) continue;
        return fail(ErrorKind::invalid_argument, "tensor {} has {} bytes, but its shape and the type {} need {}", quote(written.name),
                    written.data.size(), type_info(written.type).name, read.size());
    }
    return {};
}

}  // namespace headroom::gguf
