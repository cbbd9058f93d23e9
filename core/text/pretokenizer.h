#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace headroom::text {

// A way to cut text into the words that byte-pair merges never cross, and what goes with it.
struct PreTokenizerKind {
    std::vector<std::string_view> patterns;  // applied one after the other: each cuts the pieces of the one before
    bool whole_words_first = false;          // a word that is a token is taken whole, whatever the merges say
    bool add_bos = false;                    // where the file does not say
};

// By the file's tokenizer.ggml.pre ("llama-bpe", "qwen2", …); nullptr for a name that is not known.
[[nodiscard]] const PreTokenizerKind* find_pre_tokenizer(std::string_view name) noexcept;
// Used where the file names none, or one that is not known.
[[nodiscard]] const PreTokenizerKind& default_pre_tokenizer() noexcept;

// The compiled patterns. Immutable; split() is safe from any thread.
class PreTokenizer {
public:
    // Errors: internal (a pattern of ours that PCRE2 refuses).
    [[nodiscard]] static Result<PreTokenizer> compile(const PreTokenizerKind& kind);

    // Appends the pieces of text, in order; joined they are the text. Bytes that are not UTF-8 make pieces of their own. Time is
    // linear in the text: where a pattern meets its limits all the same, the rest of the text is one piece.
    void split(std::string_view text, std::vector<std::string_view>& pieces) const;

    PreTokenizer(PreTokenizer&&) noexcept;
    PreTokenizer& operator=(PreTokenizer&&) noexcept;
    ~PreTokenizer();

private:
    struct Code;
    PreTokenizer();
    std::vector<std::unique_ptr<Code>> codes_;
};

}  // namespace headroom::text
