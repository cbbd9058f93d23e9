#pragma once

// GGUF's tensor types: their numbers in the file, their names, their blocks.
// Source: the GGUF specification (docs/gguf.md of the ggml project) and the block layouts it names.

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::gguf {

// The value is the number in the file.
enum class TensorType : std::uint32_t {
    f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q8_1 = 9, q2_k = 10, q3_k = 11, q4_k = 12, q5_k = 13,
    q6_k = 14, q8_k = 15, iq2_xxs = 16, iq2_xs = 17, iq3_xxs = 18, iq1_s = 19, iq4_nl = 20, iq3_s = 21, iq2_s = 22, iq4_xs = 23,
    i8 = 24, i16 = 25, i32 = 26, i64 = 27, f64 = 28, iq1_m = 29, bf16 = 30, q4_0_4_4 = 31, q4_0_4_8 = 32, q4_0_8_8 = 33,
    tq1_0 = 34, tq2_0 = 35, iq4_nl_4_4 = 36, iq4_nl_4_8 = 37, iq4_nl_8_8 = 38, mxfp4 = 39, nvfp4 = 40, q1_0 = 41, q2_0 = 42,
};

struct TypeInfo {
    TensorType type;
    std::string_view name;         // as in the field: "Q4_K"
    std::uint32_t block_elements;  // elements to a block (1, 32, 64 or 256); 0 where this program does not know the layout
    std::uint32_t block_bytes;
    bool supported;                // the engine can compute with it
};

// The description of a type number from a file, or nullptr for one that nobody has assigned.
[[nodiscard]] const TypeInfo* find_type(std::uint32_t number) noexcept;
[[nodiscard]] const TypeInfo& type_info(TensorType type) noexcept;
// By name, any case ("q4_k"): for tools and tests.
[[nodiscard]] std::optional<TensorType> type_by_name(std::string_view name) noexcept;

}  // namespace headroom::gguf
