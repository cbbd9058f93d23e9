#pragma once

// Binds a file's tensors to a Transformer: each one by name, its shape checked against the hyper-parameters.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/gguf/file.h"
#include "core/model/transformer.h"

namespace headroom::model {

// Every function's error names the file and the tensor, and what was expected and seen: invalid_file for a missing tensor or a wrong
// shape, unsupported for a type the engine lacks.
class Weights {
public:
    explicit Weights(const gguf::File& file);

    [[nodiscard]] bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

    [[nodiscard]] Result<cpu::Matrix> matrix(std::string_view name, std::int64_t rows, std::int64_t cols);
    // The first of `count` matrices behind one another.
    [[nodiscard]] Result<cpu::Matrix> stack(std::string_view name, std::int64_t count, std::int64_t rows, std::int64_t cols);
    [[nodiscard]] Result<FloatVector> vector(std::string_view name, std::int64_t n);
    // No such tensor: an empty one.
    [[nodiscard]] Result<FloatVector> optional_vector(std::string_view name, std::int64_t n);
    // "{name}.weight" and, where `bias` asks or allows it, "{name}.bias".
    enum class Bias : std::uint8_t { none, optional, required };
    [[nodiscard]] Result<Linear> linear(std::string_view name, std::int64_t rows, std::int64_t cols, Bias bias = Bias::none);

    // A tensor that nothing here asked for means that the file wants something this program would leave out: unsupported.
    [[nodiscard]] Result<> check_all_used() const;
    // For tensors that hold what the program computes by itself.
    void ignore(std::string_view name);

private:
    [[nodiscard]] Result<const gguf::Tensor*> find(std::string_view name, std::initializer_list<std::int64_t> shape);

    const gguf::File& file_;
    std::vector<bool> used_;  // by position in file_.tensors()
};

}  // namespace headroom::model
