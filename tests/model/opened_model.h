#pragma once

#include <cstddef>
#include <vector>

#include "core/gguf/file.h"
#include "core/model/family.h"
#include "tests/model/model_runner.h"
#include "tests/model/synthetic_model.h"

namespace headroom::test {

// A synthetic model with everything that its weights point into.
struct OpenedModel {
    explicit OpenedModel(const SyntheticModel& model, cpu::KvType kv_type = cpu::KvType::f16)
        : bytes(synthetic_bytes(model)), file(must(gguf::File::parse(bytes, "synthetic.gguf"))), transformer(must(model::bind_transformer(file))) {
        must(model::set_kv_type(transformer, kv_type));
    }
    std::vector<std::byte> bytes;
    gguf::File file;
    model::Transformer transformer;
};

}  // namespace headroom::test
