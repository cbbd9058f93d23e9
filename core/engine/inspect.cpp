#include <algorithm>
#include <new>

#include "core/base/paths.h"
#include "core/base/quote.h"
#include "core/base/system.h"
#include "core/engine/description.h"
#include "core/engine/quantization.h"
#include "core/model/family.h"
#include "core/model/forward.h"

namespace headroom::engine {
namespace {

// A number of the metadata for people; 0 where it is absent or damaged.
int number(const gguf::File& file, std::string_view key) {
    const auto value = file.get_unsigned(key);
    return value && *value ? static_cast<int>(std::min<std::uint64_t>(**value, INT32_MAX)) : 0;
}

std::string text(const gguf::File& file, std::string_view key) {
    const auto value = file.get_string(key);
    return value && *value ? printable(**value, 200) : std::string();
}

}  // namespace

Result<int> context_in_use(int trained, int wanted) {
    if (wanted < 0 || wanted > kMaxContext) {
        return fail(ErrorKind::invalid_argument, "A context of {} positions was asked for, possible are 1 to {}", wanted, kMaxContext);
    }
    return wanted > 0 ? wanted : std::min(trained, kDefaultContext);
}

ModelInfo describe(const gguf::File& file) {
    ModelInfo info;
    info.name = text(file, "general.name");
    if (info.name.empty()) info.name = to_utf8(from_utf8(file.name()).stem());
    info.family = text(file, "general.architecture");
    info.quantization = quantization_name(file);
    for (const gguf::Tensor& tensor : file.tensors()) info.parameters += tensor.elements();
    info.file_bytes = file.file_bytes();
    info.trained_context = number(file, info.family + ".context_length");
    info.context = std::min(info.trained_context, kDefaultContext);
    info.layers = number(file, info.family + ".block_count");
    info.experts = number(file, info.family + ".expert_count");
    info.experts_used = number(file, info.family + ".expert_used_count");
    if (const gguf::Tensor* embedding = file.find_tensor("token_embd.weight")) {
        info.vocabulary = static_cast<int>(std::min<std::uint64_t>(embedding->shape[1], INT32_MAX));
    }
    info.has_chat_template = file.find("tokenizer.chat_template") != nullptr;
    return info;
}

Estimate estimate(const gguf::File& file, const model::Transformer& transformer, int context) {
    Estimate result;
    for (const gguf::Tensor& tensor : file.tensors()) result.weights_bytes += tensor.data.size();
    result.kv_bytes = transformer.kv_shape().bytes(context);
    result.scratch_bytes = model::Forward::scratch_bytes(transformer, context);
    result.available_ram = available_ram();
    return result;
}

Inspection inspect(const gguf::File& file, int context, KvType kv_type) try {
    Inspection inspection;
    inspection.info = describe(file);
    const auto used = context_in_use(inspection.info.trained_context, context);
    if (!used) {
        inspection.problem = used.error().message;
        return inspection;
    }
    inspection.info.context = *used;
    auto transformer = model::bind_transformer(file);
    if (!transformer) {
        inspection.problem = transformer.error().message;
        return inspection;
    }
    inspection.info.kv_type = kv_type;
    if (const auto kept = model::set_kv_type(*transformer, kv_type); !kept) {
        inspection.problem = kept.error().message;
        return inspection;
    }
    inspection.estimate = estimate(file, *transformer, *used);
    return inspection;
} catch (const std::bad_alloc&) {
    Inspection inspection;
    inspection.problem = "There is not enough memory to look at the file";
    return inspection;
}

}  // namespace headroom::engine
