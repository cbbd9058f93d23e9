// Any JSON as a schema: it is refused, or what its grammar writes is valid by it.
// Input: a byte that decides the choices, then the schema, or an object with it under "schema".

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/utf8.h"
#include "core/text/constraint.h"
#include "core/text/grammar/schema_facts.h"
#include "core/text/json_schema.h"
#include "tests/fuzz/expect.h"
#include "tests/text/tiny_vocabulary.h"

using namespace headroom;
using namespace headroom::text;

namespace {

std::shared_ptr<const TokenTrie> trie() {
    static const std::shared_ptr<const TokenTrie> made = [] {
        auto vocabulary = test::tiny_gpt2();
        for (const char* piece : {"{\"", "\":", "\",\"", "\"}", "},", "[[", "]]", "1,", "null", "true", "\"a", "a\"", "12", "\\\"", "Ã©"}) vocabulary.tokens.push_back({piece});
        const auto tokenizer = test::load_tokenizer(vocabulary, [](gguf::Writer& writer) { writer.add("tokenizer.ggml.pre", "gpt-2"); });
        FUZZ_EXPECT(tokenizer);
        return TokenTrie::build(**tokenizer);
    }();
    return made;
}

// Some tokens that may follow, then the shortest end.
std::string walk(const std::shared_ptr<const TokenGrammar>& grammar, std::uint32_t& random) {
    Constraint constraint(grammar);
    std::vector<float> logits(static_cast<std::size_t>(trie()->vocabulary()));
    std::string text;
    for (int step = 0; step < 24 && !constraint.finished(); ++step) {
        logits.assign(logits.size(), 0.0f);
        FUZZ_EXPECT(constraint.mask(logits));
        std::vector<TokenId> ids;
        for (std::size_t i = 0; i < logits.size(); ++i) {
            if (logits[i] == 0) ids.push_back(static_cast<TokenId>(i));
        }
        random = random * 1664525 + 1013904223;
        const TokenId id = ids[(random >> 8) % ids.size()];
        FUZZ_EXPECT(constraint.accept(id));
        text += trie()->bytes(id);
    }
    return text + constraint.shortest_ending();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::uint32_t random = data[0];
    Json schema = Json::parse(data + 1, data + size, nullptr, false);
    if (schema.is_discarded()) return 0;
    if (schema.is_object() && schema.contains("schema")) schema = Json(schema["schema"]);
    const SchemaLimits limits{.depth = 64, .combinations = 500, .states = 20'000};
    const auto grammar = compile_json_schema(schema, limits);
    if (!grammar) {
        const ErrorKind kind = grammar.error().kind;
        FUZZ_EXPECT(kind == ErrorKind::invalid_argument || kind == ErrorKind::unsupported);
        FUZZ_EXPECT(utf8_valid_prefix(grammar.error().message) == grammar.error().message.size());
        return 0;
    }
    auto document = SchemaDocument::read(schema, "#", limits);
    FUZZ_EXPECT(document);
    const auto facts = document->facts_of(schema, "");
    FUZZ_EXPECT(facts);
    const auto over = std::make_shared<const TokenGrammar>(*grammar, trie());
    for (int i = 0; i < 4; ++i) {
        const std::string text = walk(over, random);
        FUZZ_EXPECT((*grammar)->matches(text));
        const Json value = Json::parse(text, nullptr, false);
        FUZZ_EXPECT(!value.is_discarded());
        // A schema that refers to nothing but itself says nothing: there the check has no answer.
        const auto valid = document->allows(*facts, value);
        if (valid && !*valid) {
            fmt::print(stderr, "{} is not valid by {}\n", text, schema.dump());
            FUZZ_EXPECT(false);
        }
    }
    return 0;
}
