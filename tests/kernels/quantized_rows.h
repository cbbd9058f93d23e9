#pragma once

// Rows of activations with their quantized forms as the CPU makes them, on the device and here, for tests of products.

#include <thread>

#include "core/compute/cpu/activations_storage.h"
#include "core/compute/cpu/ops.h"
#include "core/compute/cpu/reference.h"
#include "tests/kernels/kernel_device.h"

namespace headroom::test {

inline constexpr std::uint32_t kAllForms = kernels::kFormFloats | kernels::kForm32 | kernels::kForm256;

class Rows {
public:
    // values: [tokens, cols]; forms: those that cols allows are made.
    Rows(KernelDevice& device, std::vector<float> rows, std::int64_t tokens, std::int64_t cols)
        : values(std::move(rows)), tokens_(tokens), cols_(cols), pool_(tokens * cols < 100000 ? 1 : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))), x_(device, values), codes_256_(device, codes_of(256)),
          scales_256_(device, scales_of(256)), sums_256_(device, sums_of(256)), codes_32_(device, codes_of(32)), scales_32_(device, scales_of(32)),
          sums_32_(device, sums_of(32)) {
        activations.assign(values.data(), tokens, cols, cols);
        activations.require(pool_, forms() & ~kernels::kFormFloats);
    }

    [[nodiscard]] std::uint32_t forms() const noexcept {
        return kernels::kFormFloats | (cols_ % 32 == 0 ? kernels::kForm32 : 0U) | (cols_ % 256 == 0 ? kernels::kForm256 : 0U);
    }
    [[nodiscard]] const float* x() const noexcept { return x_.data(); }
    [[nodiscard]] kernels::Quantized groups_256() const noexcept {
        if (cols_ % 256 != 0) return {};
        return {codes_256_.data(), scales_256_.data(), sums_256_.data()};
    }
    [[nodiscard]] kernels::Quantized groups_32() const noexcept {
        if (cols_ % 32 != 0) return {};
        return {codes_32_.data(), scales_32_.data(), sums_32_.data()};
    }
    // What the CPU finds: [tokens, w.rows].
    [[nodiscard]] std::vector<float> product(const cpu::Matrix& w) {
        std::vector<float> y(static_cast<std::size_t>(tokens_ * w.rows));
        const cpu::Product products[] = {{w, y.data(), w.rows}};
        cpu::matmul(pool_, products, activations);
        return y;
    }

    std::vector<float> values;
    cpu::Activations activations;

    // As vectors, for results of kernels to be compared with.
    [[nodiscard]] std::vector<std::int8_t> codes_of(std::int64_t group) const {
        std::vector<std::int8_t> out;
        each_group(group, [&](const std::int8_t* q, float, const std::int16_t*) { out.insert(out.end(), q, q + group); });
        return out;
    }
    [[nodiscard]] std::vector<float> scales_of(std::int64_t group) const {
        std::vector<float> out;
        each_group(group, [&](const std::int8_t*, float scale, const std::int16_t*) { out.push_back(scale); });
        return out;
    }
    [[nodiscard]] std::vector<std::int16_t> sums_of(std::int64_t group) const {
        std::vector<std::int16_t> out;
        each_group(group, [&](const std::int8_t*, float, const std::int16_t* sums) { out.insert(out.end(), sums, sums + group / 16); });
        return out;
    }

private:
    template <class Visit>
    void each_group(std::int64_t group, Visit visit) const {
        if (cols_ % group != 0) return;
        for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(group)) {
            if (group == 256) {
                cpu::Group256 made;
                cpu::reference::quantize(values.data() + at, made);
                visit(made.q, made.scale, made.sums16);
            } else {
                cpu::Groups32 made;
                cpu::reference::quantize(values.data() + at, 32, made);
                std::int16_t sums[2] = {};
                for (int i = 0; i < 32; ++i) sums[i / 16] = static_cast<std::int16_t>(sums[i / 16] + made.q[i]);
                visit(made.q, made.scales[0], sums);
            }
        }
    }

    std::int64_t tokens_, cols_;
    ThreadPool pool_;
    Array<float> x_;
    Array<std::int8_t> codes_256_;
    Array<float> scales_256_;
    Array<std::int16_t> sums_256_;
    Array<std::int8_t> codes_32_;
    Array<float> scales_32_;
    Array<std::int16_t> sums_32_;
};

// A random matrix here and on the device.
struct Weights {
    Weights(KernelDevice& device, const Layout& layout, std::int64_t rows, std::int64_t cols, Random& random)
        : here(layout, rows, cols, random), there_(device, here.bytes) {}
    [[nodiscard]] kernels::Matrix matrix() const {
        return {reinterpret_cast<const std::uint8_t*>(there_.data()), static_cast<std::uint32_t>(here.matrix.type),
                static_cast<std::int32_t>(here.matrix.rows), static_cast<std::int32_t>(here.matrix.cols),
                static_cast<std::uint32_t>(here.matrix.row_bytes)};
    }
    RandomMatrix here;

private:
    Array<std::byte> there_;
};

}  // namespace headroom::test
