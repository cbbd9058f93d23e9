#pragma once

// Small vocabularies of our own, as GGUF files in memory.

#include <functional>
#include <string>
#include <vector>

#include "core/gguf/file.h"
#include "core/gguf/writer.h"
#include "core/text/byte_alphabet.h"
#include "core/text/tokenizer.h"

namespace headroom::test {

struct TinyToken {
    std::string text;
    int type = 1;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte
    float score = 0;
};

struct TinyVocabulary {
    std::string model;
    std::vector<TinyToken> tokens;
    std::vector<std::string> merges;

    void write(gguf::Writer& writer) const {
        std::vector<std::string_view> texts;
        std::vector<std::int32_t> types;
        std::vector<float> scores;
        for (const TinyToken& token : tokens) {
            texts.push_back(token.text);
            types.push_back(token.type);
            scores.push_back(token.score);
        }
        writer.add("tokenizer.ggml.model", model);
        writer.add_strings("tokenizer.ggml.tokens", texts);
        writer.add_array("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
        if (model == "llama") writer.add_array("tokenizer.ggml.scores", std::span<const float>(scores));
        if (model == "gpt2") {
            const std::vector<std::string_view> lines(merges.begin(), merges.end());
            writer.add_strings("tokenizer.ggml.merges", lines);
        }
    }
    [[nodiscard]] text::TokenId id(std::string_view text) const {
        for (std::size_t i = 0; i < tokens.size(); ++i)
            if (tokens[i].text == text) return static_cast<text::TokenId>(i);
        return -1;
    }
};

// Ids 0 to 255 are the bytes.
inline TinyVocabulary tiny_gpt2() {
    TinyVocabulary vocabulary{"gpt2", {}, {"h e", "l l", "he ll", "hell o", "Ġ hell", "a a", "aa aa", "Ġ Ġ", "o o"}};
    for (int byte = 0; byte < 256; ++byte)
        vocabulary.tokens.push_back({std::string(text::byte_letter(static_cast<unsigned char>(byte)))});
    for (const char* text : {"he", "ll", "hell", "hello", "Ġhell", "aa", "aaaa", "ĠĠ", "oo", "Ġhello"}) vocabulary.tokens.push_back({text});
    for (const char* text : {"<|start|>", "<|im_end|>", "<|end_of_text|>", "<|x|>y", "x|>", "♦"}) vocabulary.tokens.push_back({text, 3});
    for (const char* text : {"<think>", "ü", "<|x|>"}) vocabulary.tokens.push_back({text, 4});
    return vocabulary;
}

// As SentencePiece writes them: <unk>, <s>, </s>, the bytes, then pieces.
inline TinyVocabulary tiny_llama() {
    TinyVocabulary vocabulary{"llama", {{"<unk>", 2}, {"<s>", 3}, {"</s>", 3}}, {}};
    for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.push_back({fmt::format("<0x{:02X}>", byte), 6});
    float score = 0;
    for (const char* text : {"▁t", "he", "▁the", "ll", "hell", "hello", "▁hello", "▁▁", "aa", "aaaa", "<s", "▁", "h", "e", "l", "o", "t",
                             "a", "<", "s", ">", "/"})
        vocabulary.tokens.push_back({text, 1, --score});
    vocabulary.tokens.push_back({"<tool>", 4});
    return vocabulary;
}

// The tokenizer of a file with this vocabulary; `more` adds metadata.
inline Result<std::unique_ptr<const text::Tokenizer>> load_tokenizer(const TinyVocabulary& vocabulary,
                                                                     const std::function<void(gguf::Writer&)>& more = {}) {
    gguf::Writer writer;
    vocabulary.write(writer);
    if (more) more(writer);
    const auto bytes = writer.bytes();
    if (!bytes) return std::unexpected(bytes.error());
    HR_TRY(const auto file, gguf::File::parse(*bytes, "tiny.gguf"));
    return text::Tokenizer::load(file);
}

}  // namespace headroom::test
