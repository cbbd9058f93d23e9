#include "core/text/pretokenizer.h"

#include <map>

// The patterns of the models' own tokenizer files, in the syntax of PCRE2. There \s means Unicode's White_Space: see pretokenizer.cpp.

namespace headroom::text {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                                     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                                    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
                                     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kLineBreak = R"([\r\n])";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDigits = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = R"([0-9][0-9][0-9])";
// U+4E00 to U+9FA5, U+0800 to U+4E00 (sic), Hangul.
constexpr std::string_view kEastAsian = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
// Cased letters of the common scripts, by an old edition of Unicode.
constexpr std::string_view kDeepSeekWord =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373})"
    R"(\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481})"
    R"(\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126})"
    R"(\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B})"
    R"(\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
    R"(]+)";
constexpr std::string_view kDeepSeekMarks =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
// As \s+$, but tried only where a run of spaces begins: otherwise a long run in the middle would cost its length squared.
constexpr std::string_view kTrailingSpace = R"((?<!\s)\s++$)";

using KindMap = std::map<std::string_view, PreTokenizerKind, std::less<>>;

KindMap make_kinds() {
    const PreTokenizerKind gpt2{{kGpt2}};
    const PreTokenizerKind llama3{{kLlama3}, true, true};
    const PreTokenizerKind llama3_plain{{kLlama3}};
    const PreTokenizerKind qwen2{{kQwen2}};
    const PreTokenizerKind qwen35{{kQwen35}};
    const PreTokenizerKind tekken{{kTekken}, true, true};
    const PreTokenizerKind gpt4o{{kGpt4o}};
    const PreTokenizerKind single_digits{{kDigit, kGpt2}};
    const PreTokenizerKind falcon{{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, kThreeDigits}};
    const PreTokenizerKind deepseek_llm{{kLineBreak, kDeepSeekWord, kDeepSeekMarks, kTrailingSpace, kEastAsian, kDigits}};
    const PreTokenizerKind deepseek_coder{{kLineBreak, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kEastAsian, kDigit}};
    const PreTokenizerKind deepseek_v3{
        {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
         R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
         R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
    return {
        {"default", default_pre_tokenizer()},
        {"gpt-2", gpt2}, {"gpt2", gpt2}, {"phi-2", gpt2}, {"mpt", gpt2}, {"olmo", gpt2}, {"jais", gpt2}, {"trillion", gpt2},
        {"llama-bpe", llama3}, {"llama3", llama3}, {"llama-v3", llama3}, {"falcon3", llama3}, {"falcon-h1", llama3},
        {"pixtral", llama3}, {"midm-2.0", llama3}, {"lfm2", llama3},
        {"dbrx", llama3_plain}, {"smaug-bpe", llama3_plain}, {"chatglm-bpe", llama3_plain}, {"glm4", llama3_plain},
        {"qwen2", qwen2}, {"deepseek-r1-qwen", qwen2}, {"stablelm2", qwen2}, {"megrez", qwen2},
        {"qwen35", qwen35},
        {"tekken", tekken},
        {"gpt-4o", gpt4o}, {"llama4", gpt4o},
        {"starcoder", single_digits}, {"refact", single_digits}, {"command-r", single_digits}, {"smollm", single_digits},
        {"codeshell", single_digits}, {"exaone", single_digits}, {"minerva-7b", single_digits},
        {"falcon", falcon},
        {"deepseek-llm", deepseek_llm}, {"deepseek-coder", deepseek_coder}, {"deepseek-v3", deepseek_v3},
    };
}

}  // namespace

const PreTokenizerKind& default_pre_tokenizer() noexcept {
    static const PreTokenizerKind kind{{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, kDigits, kThreeDigits}};
    return kind;
}

const PreTokenizerKind* find_pre_tokenizer(std::string_view name) noexcept {
    static const KindMap kinds = make_kinds();
    const auto it = kinds.find(name);
    return it == kinds.end() ? nullptr : &it->second;
}

}  // namespace headroom::text
