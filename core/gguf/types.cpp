#include "core/gguf/types.h"

#include <algorithm>
#include <array>

namespace headroom::gguf {
namespace {

using enum TensorType;

// Sorted by number. Block sizes are facts of the format: e.g. Q4_K is 2 + 2 bytes of scales, 12 of 6-bit scales and
// minima, and 128 of 4-bit weights for 256 elements.
constexpr std::array types{
    TypeInfo{f32, "F32", 1, 4, true},
    TypeInfo{f16, "F16", 1, 2, true},
    TypeInfo{q4_0, "Q4_0", 32, 18, true},
    TypeInfo{q4_1, "Q4_1", 32, 20, true},
    TypeInfo{q5_0, "Q5_0", 32, 22, true},
    TypeInfo{q5_1, "Q5_1", 32, 24, true},
    TypeInfo{q8_0, "Q8_0", 32, 34, true},
    TypeInfo{q8_1, "Q8_1", 32, 36, false},
    TypeInfo{q2_k, "Q2_K", 256, 84, true},
    TypeInfo{q3_k, "Q3_K", 256, 110, true},
    TypeInfo{q4_k, "Q4_K", 256, 144, true},
    TypeInfo{q5_k, "Q5_K", 256, 176, true},
    TypeInfo{q6_k, "Q6_K", 256, 210, true},
    TypeInfo{q8_k, "Q8_K", 256, 292, false},
    TypeInfo{iq2_xxs, "IQ2_XXS", 256, 66, false},
    TypeInfo{iq2_xs, "IQ2_XS", 256, 74, false},
    TypeInfo{iq3_xxs, "IQ3_XXS", 256, 98, false},
    TypeInfo{iq1_s, "IQ1_S", 256, 50, false},
    TypeInfo{iq4_nl, "IQ4_NL", 32, 18, true},
    TypeInfo{iq3_s, "IQ3_S", 256, 110, false},
    TypeInfo{iq2_s, "IQ2_S", 256, 82, false},
    TypeInfo{iq4_xs, "IQ4_XS", 256, 136, true},
    TypeInfo{i8, "I8", 1, 1, false},
    TypeInfo{i16, "I16", 1, 2, false},
    TypeInfo{i32, "I32", 1, 4, false},
    TypeInfo{i64, "I64", 1, 8, false},
    TypeInfo{f64, "F64", 1, 8, false},
    TypeInfo{iq1_m, "IQ1_M", 256, 56, false},
    TypeInfo{bf16, "BF16", 1, 2, true},
    TypeInfo{q4_0_4_4, "Q4_0_4_4", 32, 18, false},
    TypeInfo{q4_0_4_8, "Q4_0_4_8", 32, 18, false},
    TypeInfo{q4_0_8_8, "Q4_0_8_8", 32, 18, false},
    TypeInfo{tq1_0, "TQ1_0", 256, 54, false},
    TypeInfo{tq2_0, "TQ2_0", 256, 66, false},
    TypeInfo{iq4_nl_4_4, "IQ4_NL_4_4", 32, 18, false},
    TypeInfo{iq4_nl_4_8, "IQ4_NL_4_8", 32, 18, false},
    TypeInfo{iq4_nl_8_8, "IQ4_NL_8_8", 32, 18, false},
    TypeInfo{mxfp4, "MXFP4", 32, 17, false},
    TypeInfo{nvfp4, "NVFP4", 64, 36, false},
    TypeInfo{q1_0, "Q1_0", 0, 0, false},
    TypeInfo{q2_0, "Q2_0", 0, 0, false},
};
static_assert(std::ranges::is_sorted(types, {}, &TypeInfo::type));
static_assert(std::ranges::none_of(types, [](const TypeInfo& info) { return info.supported && info.block_elements == 0; }));

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

const TypeInfo* find_type(std::uint32_t number) noexcept {
    const auto found = std::ranges::lower_bound(types, static_cast<TensorType>(number), {}, &TypeInfo::type);
    return found != types.end() && static_cast<std::uint32_t>(found->type) == number ? &*found : nullptr;
}

const TypeInfo& type_info(TensorType type) noexcept {
    const TypeInfo* info = find_type(static_cast<std::uint32_t>(type));
    return info ? *info : types.front();
}

std::optional<TensorType> type_by_name(std::string_view name) noexcept {
    const auto same = [name](const TypeInfo& info) { return std::ranges::equal(info.name, name, {}, lower, lower); };
    const auto found = std::ranges::find_if(types, same);
    return found == types.end() ? std::nullopt : std::optional(found->type);
}

}  // namespace headroom::gguf
