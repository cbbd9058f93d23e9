#include "core/text/pretokenizer.h"

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace headroom::text {
namespace {

// PCRE2's \s has U+180E beside the White_Space of Unicode, by which the models' own tokenizers go.
std::string with_unicode_spaces(std::string_view pattern) {
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '\\' || i + 1 == pattern.size()) {
            out.push_back(pattern[i]);
            continue;
        }
        const char letter = pattern[++i];
        if (letter == 's') {
            out.append("\\p{White_Space}");
        } else if (letter == 'S') {
            out.append("\\P{White_Space}");
        } else {
            out.push_back('\\');
            out.push_back(letter);
        }
    }
    return out;
}

struct FreeMatch {
    void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};

}  // namespace

struct PreTokenizer::Code {
    pcre2_code* code = nullptr;
    pcre2_match_context* limits = nullptr;
    Code() = default;
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
    ~Code() {
        pcre2_match_context_free(limits);
        pcre2_code_free(code);
    }

    // The next match at or behind `from`: [begin, end), or nothing.
    std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text, std::size_t from, pcre2_match_data* data) const {
        const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
        // The whole text was checked once: checking the rest of it again for each match would take its length squared.
        int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data, limits);
        if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
            rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | PCRE2_NO_JIT, data, limits);
        if (rc < 0) return std::nullopt;  // no match, or a limit was met
        const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
        return std::pair<std::size_t, std::size_t>(range[0], range[1]);
    }

    void split(std::string_view text, std::vector<std::string_view>& pieces, pcre2_match_data* data) const {
        std::size_t at = 0;
        while (at < text.size()) {
            const auto match = find(text, at, data);
            if (!match) break;
            if (match->first > at) pieces.push_back(text.substr(at, match->first - at));
            pieces.push_back(text.substr(match->first, match->second - match->first));
            at = match->second;
        }
        if (at < text.size()) pieces.push_back(text.substr(at));
    }
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::compile(const PreTokenizerKind& kind) {
    // Backtracking steps for one match. No pattern needs more than a few for each byte of the match; the longest single word that
    // is still matched as one is therefore millions of bytes long.
    constexpr std::uint32_t kMatchLimit = 50'000'000;

    PreTokenizer result;
    for (const std::string_view source : kind.patterns) {
        const std::string pattern = with_unicode_spaces(source);
        auto code = std::make_unique<Code>();
        int error = 0;
        PCRE2_SIZE offset = 0;
        code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset, nullptr);
        code->limits = pcre2_match_context_create(nullptr);
        if (code->code == nullptr || code->limits == nullptr)
            return fail(ErrorKind::internal, "the pre-tokenizer pattern {} does not compile (PCRE2 error {} at {})", pattern, error,
                        offset);
        pcre2_set_match_limit(code->limits, kMatchLimit);
        // Where the system forbids machine code made at run time, pcre2_match() interprets the pattern.
        (void)pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
        result.codes_.push_back(std::move(code));
    }
    return result;
}

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> data(pcre2_match_data_create(1, nullptr));
    std::vector<std::string_view> parts;
    std::vector<std::string_view> next;
    while (!text.empty()) {
        const std::size_t valid = utf8_valid_prefix(text);
        if (valid > 0) {
            parts.assign(1, text.substr(0, valid));
            for (const auto& code : codes_) {
                if (data == nullptr) break;  // no memory: one piece is still a right answer for the merges
                next.clear();
                for (const std::string_view part : parts) code->split(part, next, data.get());
                parts.swap(next);
            }
            pieces.insert(pieces.end(), parts.begin(), parts.end());
            text.remove_prefix(valid);
        }
        std::size_t invalid = 0;
        while (invalid < text.size()) {
            const Utf8Step step = utf8_step(text.substr(invalid));
            if (step.status == Utf8Status::valid) break;
            invalid += step.length;
        }
        if (invalid > 0) pieces.push_back(text.substr(0, invalid));
        text.remove_prefix(invalid);
    }
}

}  // namespace headroom::text
