// write_synthetic_models FOLDER: small models with random weights of every family, as files: what tests/device/run_models.sh compares on a
// real card with the processor.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tests/model/synthetic_model.h"

using headroom::test::SyntheticModel;

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print("write_synthetic_models FOLDER\n");
        return 2;
    }
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    const auto write = [&](const char* name, SyntheticModel model) {
        model.layers = 4;
        model.embedding = 256;
        model.feed_forward = 512;
        model.type = headroom::gguf::TensorType::q8_0;
        const auto bytes = headroom::test::synthetic_bytes(model);
        std::ofstream(folder / fmt::format("{}.gguf", name), std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    write("llama", {.family = "llama", .heads = 8, .kv_heads = 2, .head_dim = 64});
    write("llama-factors", {.family = "llama", .heads = 6, .kv_heads = 2, .head_dim = 32, .rope_factors = true});
    write("qwen2", {.family = "qwen2", .heads = 14, .kv_heads = 2, .head_dim = 64, .qkv_bias = true});
    write("qwen3", {.family = "qwen3", .heads = 8, .kv_heads = 4, .head_dim = 128, .qk_norm = true, .tied = true});
    write("qwen3moe", {.family = "qwen3moe", .heads = 8, .kv_heads = 2, .head_dim = 128, .experts = 16, .experts_used = 4, .qk_norm = true});
}
