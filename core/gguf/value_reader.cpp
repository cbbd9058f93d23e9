#include "core/gguf/value_reader.h"

#include <algorithm>

#include "core/base/bytes.h"

namespace headroom::gguf {
namespace {

class ValueReader {
public:
    explicit ValueReader(Cursor& cursor) : cursor_(cursor) {}

    Result<Value> value() {
        HR_TRY(const auto type, value_type());
        Value value{type, {}};
        switch (type) {
            case ValueType::u8: HR_CHECK((number<std::uint8_t, std::uint64_t>(value))); break;
            case ValueType::i8: HR_CHECK((number<std::int8_t, std::int64_t>(value))); break;
            case ValueType::u16: HR_CHECK((number<std::uint16_t, std::uint64_t>(value))); break;
            case ValueType::i16: HR_CHECK((number<std::int16_t, std::int64_t>(value))); break;
            case ValueType::u32: HR_CHECK((number<std::uint32_t, std::uint64_t>(value))); break;
            case ValueType::i32: HR_CHECK((number<std::int32_t, std::int64_t>(value))); break;
            case ValueType::u64: HR_CHECK((number<std::uint64_t, std::uint64_t>(value))); break;
            case ValueType::i64: HR_CHECK((number<std::int64_t, std::int64_t>(value))); break;
            case ValueType::f32: HR_CHECK((number<float, double>(value))); break;
            case ValueType::f64: HR_CHECK((number<double, double>(value))); break;
            case ValueType::boolean: {
                HR_TRY(const auto byte, cursor_.number<std::uint8_t>());
                if (byte > 1) return cursor_.refuse("a bool has the value {}, 0 or 1 is expected", byte);
                value.data = byte == 1;
                break;
            }
            case ValueType::string: {
                HR_TRY(const auto text, cursor_.string());
                value.data = text;
                break;
            }
            case ValueType::array: {
                HR_TRY(auto elements, array(1));
                value.data = std::move(elements);
                break;
            }
        }
        return value;
    }

private:
    template <class T, class Wide>
    Result<> number(Value& value) {
        HR_TRY(const auto read, cursor_.number<T>());
        value.data = static_cast<Wide>(read);
        return {};
    }

    Result<ValueType> value_type() {
        HR_TRY(const auto number, cursor_.number<std::uint32_t>());
        if (number > static_cast<std::uint32_t>(ValueType::f64)) {
            return cursor_.refuse("the value type number is {}, 0 to 12 are expected", number);
        }
        return static_cast<ValueType>(number);
    }

    Result<Array> array(int depth) {
        if (depth > max_array_depth) return cursor_.refuse("arrays are nested deeper than {} levels", max_array_depth);
        Array result;
        HR_TRY(result.element, value_type());
        HR_TRY(result.count, cursor_.number<std::uint64_t>());
        switch (result.element) {
            case ValueType::string: return strings(std::move(result));
            case ValueType::array: return arrays(std::move(result), depth);
            default: return numbers(std::move(result));
        }
    }

    Result<Array> numbers(Array result) {
        const auto bytes = checked_mul(result.count, value_bytes(result.element));
        if (!bytes || *bytes > cursor_.remaining()) return too_many(result);
        HR_TRY(result.numbers, cursor_.take(*bytes));
        if (result.element == ValueType::boolean &&
            std::ranges::any_of(result.numbers, [](std::byte byte) { return byte > std::byte{1}; })) {
            return cursor_.refuse("an array of bool has a value other than 0 and 1");
        }
        return result;
    }

    // Vectors grow with what has been read, never by what the file claims.
    Result<Array> strings(Array result) {
        if (result.count > cursor_.remaining() / sizeof(std::uint64_t)) return too_many(result);
        if (result.count > max_strings - strings_) {
            return cursor_.refuse("{} strings are more than the {} that a file may have", result.count, max_strings);
        }
        strings_ += result.count;
        for (std::uint64_t i = 0; i < result.count; ++i) {
            HR_TRY(const auto text, cursor_.string());
            result.strings.push_back(text);
        }
        result.strings.shrink_to_fit();
        return result;
    }

    Result<Array> arrays(Array result, int depth) {
        if (result.count > cursor_.remaining() / (sizeof(std::uint32_t) + sizeof(std::uint64_t))) return too_many(result);
        if (result.count > max_nested_arrays - arrays_) {
            return cursor_.refuse("{} nested arrays are more than the {} that a file may have", result.count, max_nested_arrays);
        }
        arrays_ += result.count;
        for (std::uint64_t i = 0; i < result.count; ++i) {
            HR_TRY(auto inner, array(depth + 1));
            result.arrays.push_back(std::move(inner));
        }
        return result;
    }

    std::unexpected<Error> too_many(const Array& array) const {
        return cursor_.refuse("the file is cut off or damaged: an array claims {} elements of {}, {} bytes are left", array.count,
                              to_string(array.element), cursor_.remaining());
    }

    Cursor& cursor_;
    std::uint64_t strings_ = 0;
    std::uint64_t arrays_ = 0;
};

}  // namespace

Result<Metadata> read_metadata(Cursor& cursor, std::uint64_t count, const std::string& file) {
    // The smallest pair is a key of one byte and a value of one byte: 8 + 1 + 4 + 1.
    if (count > cursor.remaining() / 14) {
        return cursor.refuse("the file is cut off or damaged: it claims {} metadata entries, {} bytes are left", count,
                             cursor.remaining());
    }
    if (count > max_metadata_entries) {
        return cursor.refuse("{} metadata entries are more than the {} that a file may have", count, max_metadata_entries);
    }
    Metadata metadata(file);
    ValueReader reader(cursor);
    for (std::uint64_t i = 0; i < count; ++i) {
        cursor.enter({"metadata entry", {}, i + 1});
        HR_TRY(const auto key, cursor.string());
        if (key.empty()) return cursor.refuse("the key is empty");
        if (key.size() > max_name_bytes) {
            return cursor.refuse("the key is {} bytes long, at most {} are allowed", key.size(), max_name_bytes);
        }
        if (metadata.find(key)) return cursor.refuse("the key {} is there twice", quote(key));
        cursor.enter({"metadata", key});
        HR_TRY(auto value, reader.value());
        metadata.add(key, std::move(value));
    }
    return metadata;
}

}  // namespace headroom::gguf
