#include "core/text/tokenizer_base.h"

#include "core/text/chat_prompt.h"

namespace headroom::text {
namespace {

std::string without_marks(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t mark = text.find(kPlainMark);
        out.append(text.substr(0, mark));
        text.remove_prefix(mark == std::string_view::npos ? text.size() : mark + kPlainMark.size());
    }
    return out;
}

// Where the first character of text ends.
std::size_t first_character(std::string_view text) noexcept {
    std::size_t end = 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    return end;
}

}  // namespace

std::vector<TokenId> TokenizerBase::encode(std::string_view text, const EncodeOptions& options) const {
    std::vector<TokenId> ids;
    encode_with(options.parse_special ? vocabulary_.specials() : vocabulary_.user_defined(), text, ids);
    if (options.add_bos) prepend_bos(ids);
    return ids;
}

std::vector<TokenId> TokenizerBase::encode_chat(std::string_view rendered) const {
    std::vector<TokenId> ids;
    // A mark inside a token's text keeps it from being found here; only one of a single character needs a look behind it.
    const SpecialMatcher& specials = vocabulary_.specials();
    std::size_t plain = 0;  // where the text since the last control token begins
    const auto flush = [&](std::size_t end) {
        if (end > plain) encode_with(vocabulary_.user_defined(), without_marks(rendered.substr(plain, end - plain)), ids);
    };
    for (std::size_t at = 0; const auto match = specials.find(rendered, at);) {
        const std::size_t end = match->begin + match->length;
        at = end;
        // User-defined tokens are found again when the marks are gone: one may be written around a mark.
        if (!vocabulary_.is_hidden(match->id) || rendered.substr(end).starts_with(kPlainMark)) continue;
        flush(match->begin);
        ids.push_back(match->id);
        plain = end;
    }
    flush(rendered.size());
    prepend_bos(ids);
    return ids;
}

std::string TokenizerBase::mark_control(std::string_view text) const {
    const std::string clean = without_marks(text);
    std::string out;
    std::size_t copied = 0;
    for (std::size_t at = 0; at < clean.size(); ++at) {
        if (!vocabulary_.hidden().match_at(clean, at)) continue;
        const std::size_t end = at + first_character(std::string_view(clean).substr(at));
        out.append(clean, copied, end - copied).append(kPlainMark);
        copied = end;
    }
    return out.append(clean, copied);
}

void TokenizerBase::encode_with(const SpecialMatcher& specials, std::string_view text, std::vector<TokenId>& ids) const {
    std::size_t at = 0;
    while (at < text.size()) {
        const auto match = specials.find(text, at);
        const std::size_t end = match ? match->begin : text.size();
        if (end > at) encode_plain(text.substr(at, end - at), ids);
        if (!match) return;
        ids.push_back(match->id);
        at = match->begin + match->length;
    }
}

void TokenizerBase::prepend_bos(std::vector<TokenId>& ids) const {
    const auto bos = vocabulary_.bos();
    if (!vocabulary_.add_bos() || !bos || (!ids.empty() && ids.front() == *bos)) return;
    ids.insert(ids.begin(), *bos);
}

}  // namespace headroom::text
