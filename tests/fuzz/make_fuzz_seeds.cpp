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

bool save_gguf(const char* corpus, const std::string& name, const Writer& writer) {
    const auto bytes = writer.bytes();
    if (!bytes) {
        fmt::print(stderr, "{}: {}\n", name, bytes.error().message);
        return false;
    }
    save(corpus, name, {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
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
    return save_gguf("gguf", "empty", Writer()) && save_gguf("gguf", "every_value", every_value) && save_gguf("gguf", "arrays", arrays) &&
           save_gguf("gguf", "tensors", tensors) && save_gguf("gguf", "split", split);
}

void stream_seeds() {
    using namespace std::string_view_literals;
    save("stream", "text", "\x02stop\0</s>\0\0Some text with a sto and a </s> in it"sv);
    save("stream", "overlap", "\x00""abab\0bab\0abc\0aababcabab"sv);
    save("stream", "utf8", "\x01\0\0\0gr\xC3\xB6\xC3\x9F\x65 \xF0\x9F\x98\x80 \xED\xA0\x80 \xF0\x9F"sv);
}

// A word list of eight tokens in the manner of each tokenizer.
void add_vocabulary(Writer& writer, std::string_view model) {
    const bool spm = model == "llama";
    const std::array<std::string_view, 8> tokens{"<unk>", "<s>", "</s>", spm ? "<0x61>" : "a", spm ? "\u2581" : "\u0120", "h", "e", "he"};
    const std::array<std::int32_t, 8> types{2, 3, 3, spm ? 6 : 1, 1, 1, 1, 1};
    const std::array<float, 8> scores{0, 0, 0, 0, -1, -2, -3, -4};
    const std::array<std::string_view, 1> merges{"h e"};
    writer.add("tokenizer.ggml.model", model);
    writer.add("tokenizer.ggml.pre", "default");
    writer.add_strings("tokenizer.ggml.tokens", tokens);
    writer.add_array<std::int32_t>("tokenizer.ggml.token_type", types);
    if (spm) writer.add_array<float>("tokenizer.ggml.scores", scores);
    if (!spm) writer.add_strings("tokenizer.ggml.merges", merges);
    writer.add("tokenizer.ggml.bos_token_id", std::uint32_t(1));
    writer.add("tokenizer.ggml.eos_token_id", std::uint32_t(2));
    writer.add("tokenizer.ggml.add_bos_token", true);
}

// A model of one layer and width 8, of 8 tokens.
Writer model_seed(const std::string& family, bool mixture, bool head_norms) {
    constexpr std::uint64_t width = 8;
    constexpr std::uint64_t experts = 3;
    Writer writer;
    writer.set_alignment(8);
    const auto key = [&](const char* name) { return fmt::format("{}.{}", family, name); };
    writer.add("general.architecture", family);
    writer.add(key("block_count"), std::uint32_t(1));
    writer.add(key("context_length"), std::uint32_t(16));
    writer.add(key("embedding_length"), std::uint32_t(width));
    writer.add(key("feed_forward_length"), std::uint32_t(width));
    writer.add(key("attention.head_count"), std::uint32_t(2));
    writer.add(key("attention.head_count_kv"), std::uint32_t(2));
    writer.add(key("attention.layer_norm_rms_epsilon"), 1e-6f);
    writer.add(key("rope.freq_base"), 10000.0f);
    if (mixture) {
        writer.add(key("expert_count"), std::uint32_t(experts));
        writer.add(key("expert_used_count"), std::uint32_t(2));
        writer.add(key("expert_feed_forward_length"), std::uint32_t(width));
    }
    add_vocabulary(writer, mixture ? "gpt2" : "llama");
    const auto floats = [&](const std::string& name, std::uint64_t size) {
        std::vector<std::byte> data(size * 4);
        for (std::uint64_t i = 0; i < size; ++i) data[4 * i + 3] = std::byte{0x3F};  // 0.5
        writer.add_tensor(name, TensorType::f32, {size}, std::move(data));
    };
    const auto halves = [&](const std::string& name, std::vector<std::uint64_t> shape) {
        std::uint64_t size = 1;
        for (const std::uint64_t dimension : shape) size *= dimension;
        std::vector<std::byte> data(size * 2);
        for (std::uint64_t i = 0; i < size; ++i) data[2 * i + 1] = static_cast<std::byte>(0x30 + i % 12);  // 0.125 to 1.5
        writer.add_tensor(name, TensorType::f16, std::move(shape), std::move(data));
    };
    halves("token_embd.weight", {width, 8});
    floats("output_norm.weight", width);
    floats("blk.0.attn_norm.weight", width);
    for (const char* name : {"q", "k", "v", "output"}) halves(fmt::format("blk.0.attn_{}.weight", name), {width, width});
    if (head_norms) {
        floats("blk.0.attn_q_norm.weight", width / 2);
        floats("blk.0.attn_k_norm.weight", width / 2);
    }
    floats("blk.0.ffn_norm.weight", width);
    if (mixture) {
        writer.add_tensor("blk.0.ffn_gate_inp.weight", TensorType::f32, {width, experts}, std::vector<std::byte>(width * experts * 4));
        for (const char* name : {"gate", "up", "down"}) halves(fmt::format("blk.0.ffn_{}_exps.weight", name), {width, width, experts});
    } else {
        for (const char* name : {"gate", "up", "down"}) halves(fmt::format("blk.0.ffn_{}.weight", name), {width, width});
    }
    return writer;
}

bool model_seeds() {
    return save_gguf("model", "llama", model_seed("llama", false, false)) && save_gguf("model", "qwen3", model_seed("qwen3", false, true)) &&
           save_gguf("model", "qwen3moe", model_seed("qwen3moe", true, true));
}

void template_seeds() {
    save("template", "chat", "{{ bos_token }}{%- for m in messages %}{% if m.role == 'user' %}[{{ m['content'] | trim }}]{% else %}{{ m.content ~ "
                             "eos_token }}{% endif %}{%- endfor -%}{% if add_generation_prompt %}>{% endif %}");
    save("template", "tools", "{% set ns = namespace(n=0) %}{% for t in tools %}{% set ns.n = ns.n + 1 %}{{ t | tojson(indent=2) }}{{ "
                              "loop.index }}{% endfor %}{{ ns.n }}{{ messages | selectattr('role', 'equalto', 'tool') | map(attribute="
                              "'content') | join(', ') }}");
    save("template", "macro", "{% macro f(a, b='x') %}{{ a }}{{ caller() if caller else b }}{% endmacro %}{{ f(1) }}{% call f(2) %}y{% "
                              "endcall %}{% filter upper %}z{% endfilter %}");
    save("template", "strings", "{{ s.split(',') | map('trim') | list }}{{ '%s %d' % ('a', 3) }}{{ '{:>5}|{}'.format(n, f) }}{{ s[::-1] }}{{ "
                                "s.upper().replace('A', 'bb').startswith('bb') }}{{ s | truncate(3) | indent(2) | wordwrap(2) }}");
    save("template", "numbers", "{{ 7 // 2 }}{{ -7 % 3 }}{{ 2 ** 10 }}{{ big + 1 }}{{ f * f }}{{ 1.5 | round(1) }}{{ range(0, 10, 3) | sum }}{{ "
                                "n is odd and n < 0 or not n }}");
    save("template", "recursive", "{% for x in [[1, [2, 3]], 4] recursive %}{{ loop(x) if x is iterable else x }}{{ loop.depth }}{% else %}-{% "
                                  "endfor %}{% for i in range(9) %}{% if i == 3 %}{% continue %}{% elif i > 5 %}{% break %}{% endif %}{{ i }}"
                                  "{% endfor %}{{ strftime_now('%d %b %Y') }}");
    save("template", "raise", "{% if messages | length > 1 %}{{ raise_exception('no ' + messages[0].role) }}{% endif %}");
}

// Requests to every path, with every field somewhere. A letter as the first byte: the client leaves late; from 128 on: it stays.
void server_seeds() {
    const auto request = [](const char* name, std::string_view path, std::string_view body, std::string_view before = "\xFF") {
        save("server", name, std::string(before) + "POST " + std::string(path) + "\n\n" + std::string(body));
    };
    request("chat", "/v1/chat/completions",
            R"({"model":"synthetic","messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"y"}]}],"temperature":0.5,"max_tokens":3,)"
            R"("stop":["a"],"n":2,"seed":1,"stream":true,"stream_options":{"include_usage":true},"top_p":0.9,"top_k":5,"min_p":0.1,"repeat_penalty":1.1})");
    request("leaves", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"stream":true,"max_tokens":9})", "\x02");
    request("calls", "/v1/chat/completions",
            R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f",)"
            R"("arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"z"}],"max_tokens":2,"logprobs":true,"top_logprobs":2,"logit_bias":{"65":-5}})");
    request("tools", "/v1/chat/completions",
            R"({"messages":[{"role":"user","content":"x"}],"max_tokens":40,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
            R"("properties":{"a":{"type":"integer","minimum":1}}}}}],"tool_choice":"required","parallel_tool_calls":false})");
    request("schema", "/v1/chat/completions",
            R"({"messages":[{"role":"user","content":"x"}],"max_tokens":9,"response_format":{"type":"json_schema","json_schema":{"schema":{"anyOf":[{"type":)"
            R"("string","pattern":"^a+$"},{"$ref":"#/$defs/b"}],"$defs":{"b":{"enum":[1,2]}}}}}})");
    request("begun", "/v1/chat/completions",
            R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"{\"a\": "}],"max_tokens":30,"response_format":{"type":"json_object"}})");
    request("completion", "/v1/completions", R"({"prompt":"Once","max_tokens":3,"logprobs":2,"echo":true,"stream":true,"presence_penalty":1})");
    request("ids", "/v1/completions", R"({"prompt":[65,66,258],"max_tokens":0,"n":2,"best_of":2})");
    request("embeddings", "/v1/embeddings", R"({"input":["a","b"],"encoding_format":"base64","pooling":"last"})");
    request("vram", "/v1/vram", R"({"reserve_mib":5,"device":"cuda:0","cap_mib":null})");
    request("ollama_chat", "/api/chat",
            R"({"model":"synthetic:latest","messages":[{"role":"user","content":"x"}],"options":{"num_predict":3,"stop":"q","repeat_last_n":8},"keep_alive":"5m","format":"json"})");
    request("ollama_generate", "/api/generate", R"({"model":"synthetic","prompt":"a","system":"b","stream":false,"think":true,"options":{"num_predict":4}})");
    request("ollama_embed", "/api/embed", R"({"model":"synthetic","input":["a",""],"truncate":true})");
    request("ollama_show", "/api/show", R"({"model":"other"})");
    request("load", "/v1/load", R"({"model":"other"})");
    request("unload", "/v1/unload", "");
    using namespace std::string_view_literals;
    save("server", "several", "\xFFGET /v1/models\n\n\0GET /v1/status\n\n\0GET /metrics\n\n\0GET /api/ps\n\n"sv);
    save("server", "looks", "\xFFGET /v1/vram\n\n\0GET /v1/models/synthetic\n\n\0HEAD /health\n\n\0GET /api/tags\n\n"sv);
    save("server", "again", "\xFFPOST /v1/completions\n\n{\"prompt\":\"abcabcabc\",\"max_tokens\":4}\0POST /v1/completions\n\n{\"prompt\":\"abcabcabd\",\"max_tokens\":4}"sv);
    save("server", "page", "\xFFOPTIONS /v1/chat/completions\nOrigin: https://a.example\nAccess-Control-Request-Method: POST\n\n\0GET /v1/models\nHost: evil.example\n\n"sv);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: make_fuzz_seeds FOLDER\n");
        return 2;
    }
    folder = from_utf8(argv[1]);
    stream_seeds();
    template_seeds();
    server_seeds();
    return gguf_seeds() && model_seeds() ? 0 : 1;
}
