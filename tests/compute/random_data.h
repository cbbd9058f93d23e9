#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/compute/cpu/matrix.h"
#include "core/gguf/types.h"

// Where a quantized type keeps its halves.
struct Layout {
    headroom::gguf::TensorType type;
    const char* name;
    std::int64_t elements;
    std::int64_t bytes;
    std::vector<int> halves;
};

inline const std::vector<Layout>& layouts() {
    using enum headroom::gguf::TensorType;
    static const std::vector<Layout> all = {
        {f32, "F32", 1, 4, {}},          {f16, "F16", 1, 2, {0}},          {bf16, "BF16", 1, 2, {}},
        {q4_0, "Q4_0", 32, 18, {0}},     {q4_1, "Q4_1", 32, 20, {0, 2}},   {q5_0, "Q5_0", 32, 22, {0}},
        {q5_1, "Q5_1", 32, 24, {0, 2}},  {q8_0, "Q8_0", 32, 34, {0}},      {q2_k, "Q2_K", 256, 84, {80, 82}},
        {q3_k, "Q3_K", 256, 110, {108}}, {q4_k, "Q4_K", 256, 144, {0, 2}}, {q5_k, "Q5_K", 256, 176, {0, 2}},
        {q6_k, "Q6_K", 256, 210, {208}}, {iq4_nl, "IQ4_NL", 32, 18, {0}},  {iq4_xs, "IQ4_XS", 256, 136, {0}},
    };
    return all;
}

// Random numbers that are the same on every system (the standard's distributions are not).
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::uint32_t bits() { return static_cast<std::uint32_t>(engine_() >> 32); }
    int below(int n) { return static_cast<int>(bits() % static_cast<std::uint32_t>(n)); }
    // Roughly normal, of deviation 1.
    float value() {
        float sum = 0;
        for (int i = 0; i < 4; ++i) sum += static_cast<float>(bits() >> 8) * 0x1p-24F;
        return (sum - 2.0F) * 1.7F;
    }
    // A finite half: mostly of usual size, sometimes subnormal or zero.
    std::uint16_t half() {
        const std::uint32_t sign = bits() & 0x8000U;
        const std::uint32_t exponent = below(16) == 0 ? 0U : 2U + static_cast<std::uint32_t>(below(14));
        return static_cast<std::uint16_t>(sign | (exponent << 10) | (bits() & 1023U));
    }
    std::vector<float> values(std::int64_t count) {
        std::vector<float> out(static_cast<std::size_t>(count));
        for (float& v : out) v = value();
        return out;
    }

private:
    std::mt19937_64 engine_;
};

// A matrix of random blocks, exactly as long as it must be (so that the sanitizers see a read past its end).
struct RandomMatrix {
    RandomMatrix(const Layout& layout, std::int64_t rows, std::int64_t cols, Random& random)
        : bytes(static_cast<std::size_t>(rows * (cols / layout.elements) * layout.bytes)) {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.bits());
        for (std::size_t block = 0; block < bytes.size(); block += static_cast<std::size_t>(layout.bytes)) {
            for (const int at : layout.halves) put(block + static_cast<std::size_t>(at), random.half());
            if (layout.type == headroom::gguf::TensorType::f32) {
                const auto value = std::bit_cast<std::uint32_t>(random.value());
                put(block, static_cast<std::uint16_t>(value));
                put(block + 2, static_cast<std::uint16_t>(value >> 16));
            }
            if (layout.type == headroom::gguf::TensorType::bf16) {
                put(block, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(random.value()) >> 16));
            }
        }
        matrix = {layout.type, bytes.data(), rows, cols, cols / layout.elements * layout.bytes};
    }
    void put(std::size_t at, std::uint16_t value) {
        bytes[at] = static_cast<std::byte>(value & 255U);
        bytes[at + 1] = static_cast<std::byte>(value >> 8);
    }
    std::vector<std::byte> bytes;
    headroom::cpu::Matrix matrix;
};
