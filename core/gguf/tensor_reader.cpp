#include "core/gguf/tensor_reader.h"

#include <algorithm>

#include "core/base/bytes.h"
#include "core/gguf/value_reader.h"

namespace headroom::gguf {
namespace {

// The smallest entry: a name of one byte, one dimension, type and offset.
constexpr std::uint64_t min_entry_bytes = 8 + 1 + 4 + 8 + 4 + 8;

struct Entry {
    Tensor tensor;
    std::uint64_t position = 0;  // of the entry in the file
    std::uint64_t offset = 0;    // of its data, from where data begin
    std::uint64_t bytes = 0;     // of its data; 0 where the layout is not known
};

Result<> read_shape(Cursor& cursor, Tensor& tensor) {
    HR_TRY(const auto dimensions, cursor.number<std::uint32_t>());
    if (dimensions < 1 || dimensions > tensor.shape.size()) {
        return cursor.refuse("it has {} dimensions, 1 to {} are allowed", dimensions, tensor.shape.size());
    }
    tensor.dimensions = static_cast<int>(dimensions);
    std::uint64_t elements = 1;
    for (std::size_t i = 0; i < dimensions; ++i) {
        HR_TRY(tensor.shape[i], cursor.number<std::uint64_t>());
        if (tensor.shape[i] == 0) return cursor.refuse("its dimension {} is 0", i + 1);
        const auto product = checked_mul(elements, tensor.shape[i]);
        if (!product || *product > INT64_MAX) return cursor.refuse("its dimensions multiply to more than 63 bits hold");
        elements = *product;
    }
    return {};
}

// The bytes of a tensor's data.
Result<std::uint64_t> data_bytes(const Cursor& cursor, const Tensor& tensor) {
    const TypeInfo& info = type_info(tensor.type);
    if (info.block_elements == 0) return 0;
    if (tensor.shape[0] % info.block_elements != 0) {
        return cursor.refuse("its rows have {} elements, but {} needs a multiple of {}", tensor.shape[0], info.name,
                             info.block_elements);
    }
    const auto bytes = checked_mul<std::uint64_t>(tensor.elements() / info.block_elements, info.block_bytes);
    if (!bytes) return cursor.refuse("its size in bytes is more than 64 bits hold");
    return *bytes;
}

Result<Entry> read_entry(Cursor& cursor, std::uint64_t number, std::uint64_t alignment) {
    Entry entry;
    entry.position = cursor.position();
    Tensor& tensor = entry.tensor;
    cursor.enter({"tensor entry", {}, number});
    HR_TRY(tensor.name, cursor.string());
    if (tensor.name.empty()) return cursor.refuse("the tensor's name is empty");
    if (tensor.name.size() > max_name_bytes) {
        return cursor.refuse("the tensor's name is {} bytes long, at most {} are allowed", tensor.name.size(), max_name_bytes);
    }
    cursor.enter({"tensor", tensor.name});
    HR_CHECK(read_shape(cursor, tensor));
    HR_TRY(const auto type, cursor.number<std::uint32_t>());
    if (!find_type(type)) {
        return cursor.refuse_as(ErrorKind::unsupported,
                                fmt::format("its type has the number {}, which this version of the program does not know", type));
    }
    tensor.type = static_cast<TensorType>(type);
    HR_TRY(entry.bytes, data_bytes(cursor, tensor));
    HR_TRY(entry.offset, cursor.number<std::uint64_t>());
    if (entry.offset % alignment != 0) {
        return cursor.refuse("its data begin at offset {}, which is no multiple of the alignment {}", entry.offset, alignment);
    }
    return entry;
}

// Tensors that share bytes: damage, or an attempt to make a file mean more than it is.
Result<> refuse_overlaps(Cursor& cursor, const std::vector<Entry>& entries) {
    std::vector<const Entry*> order;
    order.reserve(entries.size());
    for (const Entry& entry : entries) {
        if (entry.bytes > 0) order.push_back(&entry);
    }
    std::ranges::sort(order, {}, &Entry::offset);
    for (std::size_t i = 1; i < order.size(); ++i) {
        const Entry& left = *order[i - 1];
        const Entry& right = *order[i];
        if (right.offset - left.offset >= left.bytes) continue;
        cursor.enter_again({"tensor", right.tensor.name}, right.position);
        return cursor.refuse("its data overlap those of tensor {}", quote(left.tensor.name));
    }
    return {};
}

}  // namespace

Result<std::vector<Tensor>> read_tensors(Cursor& cursor, std::uint64_t count, std::uint64_t alignment, std::uint16_t shard) {
    cursor.enter({"the tensor table"});
    if (count > cursor.remaining() / min_entry_bytes) {
        return cursor.refuse("the file is cut off or damaged: it claims {} tensors, {} bytes are left", count, cursor.remaining());
    }
    if (count > max_tensors) return cursor.refuse("{} tensors are more than the {} that a file may have", count, max_tensors);

    std::vector<Entry> entries;
    for (std::uint64_t i = 0; i < count; ++i) {
        HR_TRY(auto entry, read_entry(cursor, i + 1, alignment));
        entries.push_back(entry);
    }
    if (entries.empty()) return std::vector<Tensor>();

    const std::uint64_t file_bytes = cursor.bytes().size();
    const auto base = checked_round_up(cursor.position(), alignment);
    std::vector<Tensor> tensors;
    tensors.reserve(entries.size());
    for (Entry& entry : entries) {
        const auto begin = base ? checked_add(*base, entry.offset) : std::nullopt;
        if (!begin || *begin > file_bytes || entry.bytes > file_bytes - *begin) {
            cursor.enter_again({"tensor", entry.tensor.name}, entry.position);
            return cursor.refuse("the file is cut off or damaged: the tensor's {} bytes of data at offset {} lie past the file's end",
                                 entry.bytes, entry.offset);
        }
        entry.tensor.data = cursor.bytes().subspan(static_cast<std::size_t>(*begin), static_cast<std::size_t>(entry.bytes));
        entry.tensor.shard = shard;
        tensors.push_back(entry.tensor);
    }
    HR_CHECK(refuse_overlaps(cursor, entries));
    return tensors;
}

}  // namespace headroom::gguf
