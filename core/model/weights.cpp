#include "core/model/weights.h"

#include <array>

#include <fmt/ranges.h>

#include "core/base/quote.h"

namespace headroom::model {
namespace {

cpu::Matrix as_matrix(const gguf::Tensor& tensor) {
    const gguf::TypeInfo& type = gguf::type_info(tensor.type);
    const auto cols = static_cast<std::int64_t>(tensor.shape[0]);
    return {.type = tensor.type, .data = tensor.data.data(), .rows = static_cast<std::int64_t>(tensor.shape[1]), .cols = cols,
            .row_bytes = cols / type.block_elements * type.block_bytes};
}

}  // namespace

Weights::Weights(const gguf::File& file) : file_(file), used_(file.tensors().size()) {}

void Weights::ignore(std::string_view name) {
    if (const gguf::Tensor* tensor = file_.find_tensor(name)) used_[static_cast<std::size_t>(tensor - file_.tensors().data())] = true;
}

// shape: rows' length first, as in the file; dimensions left out are 1.
Result<const gguf::Tensor*> Weights::find(std::string_view name, std::initializer_list<std::int64_t> shape) {
    const gguf::Tensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
        return fail(ErrorKind::invalid_file, "{}: the tensor \"{}\" is missing; the file is incomplete or of another family than it says",
                    file_.name(), name);
    }
    std::array<std::uint64_t, 4> expected{1, 1, 1, 1};
    std::size_t dimension = 0;
    for (const std::int64_t size : shape) expected[dimension++] = static_cast<std::uint64_t>(size);
    if (tensor->shape != expected) {
        return fail(ErrorKind::invalid_file, "{}: the tensor \"{}\" has the shape [{}], expected [{}]", file_.name(), name,
                    fmt::join(tensor->shape.begin(), tensor->shape.begin() + tensor->dimensions, ", "), fmt::join(shape, ", "));
    }
    const gguf::TypeInfo& type = gguf::type_info(tensor->type);
    if (!type.supported) {
        return fail(ErrorKind::unsupported, "{}: the tensor \"{}\" has the type {}, which this program cannot compute with",
                    file_.name(), name, type.name);
    }
    used_[static_cast<std::size_t>(tensor - file_.tensors().data())] = true;
    return tensor;
}

Result<cpu::Matrix> Weights::matrix(std::string_view name, std::int64_t rows, std::int64_t cols) {
    HR_TRY(const gguf::Tensor* tensor, find(name, {cols, rows}));
    return as_matrix(*tensor);
}

Result<cpu::Matrix> Weights::stack(std::string_view name, std::int64_t count, std::int64_t rows, std::int64_t cols) {
    HR_TRY(const gguf::Tensor* tensor, find(name, {cols, rows, count}));
    return as_matrix(*tensor);
}

Result<FloatVector> Weights::vector(std::string_view name, std::int64_t n) {
    HR_TRY(const gguf::Tensor* tensor, find(name, {n}));
    const std::byte* data = tensor->data.data();
    if (tensor->type == gguf::TensorType::f32 && reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0) {
        return FloatVector(reinterpret_cast<const float*>(data));
    }
    std::vector<float> converted(static_cast<std::size_t>(n));
    cpu::dequantize_row(as_matrix(*tensor), 0, converted.data());
    return FloatVector(std::move(converted));
}

Result<FloatVector> Weights::optional_vector(std::string_view name, std::int64_t n) {
    if (!has(name)) return FloatVector();
    return vector(name, n);
}

Result<Linear> Weights::linear(std::string_view name, std::int64_t rows, std::int64_t cols, Bias bias) {
    Linear linear;
    HR_TRY(linear.weight, matrix(fmt::format("{}.weight", name), rows, cols));
    const std::string bias_name = fmt::format("{}.bias", name);
    if (bias == Bias::required || (bias == Bias::optional && has(bias_name))) {
        HR_TRY(linear.bias, vector(bias_name, rows));
    }
    return linear;
}

Result<> Weights::check_all_used() const {
    for (std::size_t i = 0; i < used_.size(); ++i) {
        if (!used_[i]) {
            return fail(ErrorKind::unsupported,
                        "{}: the tensor {} has no place in a model of this family: leaving it out would give wrong answers",
                        file_.name(), quote(file_.tensors()[i].name));
        }
    }
    return {};
}

}  // namespace headroom::model
