#include "core/gguf/file.h"

#include <exception>
#include <new>
#include <utility>

#include "core/base/paths.h"
#include "core/base/quote.h"
#include "core/gguf/metadata.h"
#include "core/gguf/parts.h"
#include "core/gguf/reader.h"
#include "core/gguf/split.h"

namespace headroom::gguf {
namespace {

// Nothing throws out of this folder: what the standard library may throw becomes an error.
template <class Function>
Result<File> without_exceptions(const std::string& name, Function function) {
    try {
        return function();
    } catch (const std::bad_alloc&) {
        return fail(ErrorKind::out_of_memory, "{}: there is not enough memory to read the file's tables", name);
    } catch (const std::exception& exception) {
        return fail(ErrorKind::io, "{}: cannot be read: {}", name, printable(exception.what()));
    }
}

}  // namespace

struct File::Contents {
    std::vector<MappedFile> shards;  // empty for bytes in memory
    std::string name;
    std::uint64_t file_bytes;
    std::uint32_t version;
    Metadata metadata;
    std::vector<Tensor> tensors;
    std::unordered_map<std::string_view, std::size_t> index;

    Contents(std::string file_name, Part first)
        : name(std::move(file_name)),
          file_bytes(0),
          version(first.version),
          metadata(std::move(first.metadata)),
          tensors(std::move(first.tensors)) {}

    Result<> index_tensors() {
        index.reserve(tensors.size());
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (!index.emplace(tensors[i].name, i).second) {
                return fail(ErrorKind::invalid_file, "{}: in tensor {}: there are two tensors of this name", name, quote(tensors[i].name));
            }
        }
        return {};
    }
};

File::File(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::open(const std::filesystem::path& path) {
    return without_exceptions(printable(to_utf8(path)), [&]() -> Result<File> {
        HR_TRY(auto opened, open_parts(path));
        auto contents =
            std::make_unique<Contents>(printable(to_utf8(opened.files.front().path())), std::move(opened.parts.front()));
        for (std::size_t i = 1; i < opened.parts.size(); ++i) {
            const auto& more = opened.parts[i].tensors;
            contents->tensors.insert(contents->tensors.end(), more.begin(), more.end());
        }
        contents->shards = std::move(opened.files);
        for (const MappedFile& shard : contents->shards) contents->file_bytes += shard.bytes().size();
        HR_CHECK(contents->index_tensors());
        return File(std::move(contents));
    });
}

Result<File> File::parse(std::span<const std::byte> bytes, std::string name) {
    return without_exceptions(name, [&]() -> Result<File> {
        HR_TRY(auto part, read_part(bytes, name, 0));
        HR_TRY(const auto split, read_split_info(part.metadata, name));
        if (split.count > 1) {
            return fail(ErrorKind::unsupported, "{}: is part {} of {} of a split model, which can only be opened as files", name,
                        split.number + 1, split.count);
        }
        auto contents = std::make_unique<Contents>(name, std::move(part));
        contents->file_bytes = bytes.size();
        HR_CHECK(contents->index_tensors());
        return File(std::move(contents));
    });
}

Result<> File::require_supported_types() const {
    for (const Tensor& tensor : contents_->tensors) {
        if (const TypeInfo& info = type_info(tensor.type); !info.supported) {
            return fail(ErrorKind::unsupported,
                        "{}: tensor {} is of type {}, which this program cannot compute with; get the model in another quantization, "
                        "for example Q4_K_M or Q8_0",
                        contents_->name, quote(tensor.name), info.name);
        }
    }
    return {};
}

std::uint32_t File::version() const noexcept { return contents_->version; }
std::uint64_t File::file_bytes() const noexcept { return contents_->file_bytes; }
const std::string& File::name() const noexcept { return contents_->name; }
std::span<const MappedFile> File::shards() const noexcept { return contents_->shards; }
std::span<const Tensor> File::tensors() const noexcept { return contents_->tensors; }

const Tensor* File::find_tensor(std::string_view tensor_name) const noexcept {
    const auto found = contents_->index.find(tensor_name);
    return found == contents_->index.end() ? nullptr : &contents_->tensors[found->second];
}

std::span<const std::pair<std::string_view, Value>> File::metadata() const noexcept { return contents_->metadata.entries(); }
const Value* File::find(std::string_view key) const noexcept { return contents_->metadata.find(key); }

Result<std::optional<std::uint64_t>> File::get_unsigned(std::string_view key) const { return contents_->metadata.get_unsigned(key); }
Result<std::optional<double>> File::get_float(std::string_view key) const { return contents_->metadata.get_float(key); }
Result<std::optional<bool>> File::get_bool(std::string_view key) const { return contents_->metadata.get_bool(key); }
Result<std::optional<std::string_view>> File::get_string(std::string_view key) const { return contents_->metadata.get_string(key); }
Result<const Array*> File::get_array(std::string_view key, ValueType element) const {
    return contents_->metadata.get_array(key, element);
}

}  // namespace headroom::gguf
