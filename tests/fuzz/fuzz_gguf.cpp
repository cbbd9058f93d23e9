// Any bytes as a GGUF file: an error that names the file, or an object whose every view lies inside the bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/quote.h"
#include "core/gguf/file.h"
#include "tests/fuzz/expect.h"

using namespace headroom;
using namespace headroom::gguf;

namespace {

volatile std::uint64_t sink;

// Reads the ends of a view, so that the sanitizer sees one that lies outside.
void touch(std::span<const std::byte> view) {
    if (!view.empty()) sink = sink + static_cast<std::uint64_t>(view.front()) + static_cast<std::uint64_t>(view.back());
}
void touch(std::string_view view) { touch(std::as_bytes(std::span(view))); }

void touch(const Array& array) {
    touch(array.numbers);
    if (array.element == ValueType::string) {
        FUZZ_EXPECT(array.strings.size() == array.count);
        for (const auto text : array.strings) touch(text);
    } else if (array.element == ValueType::array) {
        FUZZ_EXPECT(array.arrays.size() == array.count);
        for (const Array& inner : array.arrays) touch(inner);
    } else if (array.count > 0) {
        FUZZ_EXPECT(array.numbers.size() == array.count * value_bytes(array.element));
        sink = sink + static_cast<std::uint64_t>(array.integer(0)) + static_cast<std::uint64_t>(array.integer(array.count - 1));
        sink = sink + (array.number(array.count - 1) > 0);
    }
}

void check_error(const Error& error) {
    FUZZ_EXPECT(error.kind == ErrorKind::invalid_file || error.kind == ErrorKind::unsupported);
    FUZZ_EXPECT(error.message.starts_with("fuzz.gguf: "));
    FUZZ_EXPECT(printable(error.message) == error.message);
}

template <class T>
void check(const Result<T>& result) {
    if (!result) check_error(result.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto file = File::parse(bytes, "fuzz.gguf");
    if (!file) {
        check_error(file.error());
        return 0;
    }
    for (const auto& [key, value] : file->metadata()) {
        touch(key);
        FUZZ_EXPECT(file->find(key) == &value);
        if (const auto* text = std::get_if<std::string_view>(&value.data)) touch(*text);
        if (const auto* array = std::get_if<Array>(&value.data)) touch(*array);
        check(file->get_unsigned(key));
        check(file->get_float(key));
        check(file->get_bool(key));
        check(file->get_string(key));
        check(file->get_array(key, ValueType::string));
    }
    for (const Tensor& tensor : file->tensors()) {
        touch(tensor.name);
        touch(tensor.data);
        FUZZ_EXPECT(file->find_tensor(tensor.name) == &tensor);
        FUZZ_EXPECT(tensor.elements() > 0);
        FUZZ_EXPECT(tensor.data.empty() || (tensor.data.data() >= bytes.data() &&
                                            tensor.data.data() + tensor.data.size() <= bytes.data() + bytes.size()));
        const TypeInfo& info = type_info(tensor.type);
        FUZZ_EXPECT(info.block_elements == 0 ||
                    tensor.data.size() == tensor.elements() / info.block_elements * std::uint64_t(info.block_bytes));
    }
    check(file->require_supported_types());
    return 0;
}
