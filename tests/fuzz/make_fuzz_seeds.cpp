// Writes the seed corpora: make_fuzz_seeds FOLDER makes FOLDER/gguf and so on.

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/paths.h"
#include "core/gguf/writer.h"

using namespace headroom;
using namespace headroom::gguf;

namespace {

std::filesystem::path folder;

void save(const char* corpus, const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories(folder / corpus);
    std::ofstream(folder / corpus / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

bool save_gguf(const std::string& name, const Writer& writer) {
    const auto bytes = writer.bytes();
    if (!bytes) {
        fmt::print(stderr, "{}: {}\n", name, bytes.error().message);
        return false;
    }
    save("gguf", name, {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    return true;
}

bool gguf_seeds() {
    const std::array<std::string_view, 4> strings{"<s>", "a", "", "größe"};
    const std::array<float, 3> floats{0.0f, -1.5f, 3.0f};
    const std::array<bool, 2> flags{true, false};

    Writer every_value(2);
    every_value.add("u8", std::uint8_t(1));
    every_value.add("i8", std::int8_t(-1));
    every_value.add("u16", std::uint16_t(1));
    every_value.add("i16", std::int16_t(-1));
    every_value.add("u32", std::uint32_t(1));
    every_value.add("i32", std::int32_t(-1));
    every_value.add("u64", std::uint64_t(1));
    every_value.add("i64", std::int64_t(-1));
    every_value.add("f32", 0.5f);
    every_value.add("f64", 0.5);
    every_value.add("flag", true);
    every_value.add("text", "value");
    Writer arrays;
    arrays.add_strings("strings", strings);
    arrays.add_array<float>("floats", floats);
    arrays.add_array<bool>("flags", flags);
    Array nested{ValueType::array, 2, {}, {}, {}};
    nested.arrays.push_back(Array{ValueType::string, 1, {}, {"x"}, {}});
    nested.arrays.push_back(Array{ValueType::f32, 3, std::as_bytes(std::span(floats)), {}, {}});
    arrays.add("nested", Value{ValueType::array, nested});
    Writer tensors;
    tensors.set_alignment(8);
    tensors.add_tensor("a", TensorType::f32, {2, 1, 1, 3}, std::vector<std::byte>(24));
    tensors.add_tensor("b", TensorType::q8_0, {32}, std::vector<std::byte>(34));
    tensors.add_tensor("c", TensorType::q4_k, {256}, std::vector<std::byte>(144));
    Writer split;
    split.add("split.no", std::uint16_t(0));
    split.add("split.count", std::uint16_t(1));
    split.add("split.tensors.count", std::int32_t(0));
    return save_gguf("empty", Writer()) && save_gguf("every_value", every_value) && save_gguf("arrays", arrays) &&
           save_gguf("tensors", tensors) && save_gguf("split", split);
}

void stream_seeds() {
    using namespace std::string_view_literals;
    save("stream", "text", "\x02stop\0</s>\0\0Some text with a sto and a </s> in it"sv);
    save("stream", "overlap", "\x00""abab\0bab\0abc\0aababcabab"sv);
    save("stream", "utf8", "\x01\0\0\0gr\xC3\xB6\xC3\x9F\x65 \xF0\x9F\x98\x80 \xED\xA0\x80 \xF0\x9F"sv);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: make_fuzz_seeds FOLDER\n");
        return 2;
    }
    folder = from_utf8(argv[1]);
    stream_seeds();
    return gguf_seeds() ? 0 : 1;
}
