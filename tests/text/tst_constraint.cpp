#include <QTest>

#include <cmath>
#include <random>
#include <set>
#include <thread>

#include "core/text/constraint.h"
#include "core/text/json_schema.h"
#include "tests/support/shared_data.h"
#include "tests/text/tiny_vocabulary.h"

using namespace headroom;
using text::Json;
using text::TokenId;

namespace {

std::unique_ptr<const text::Tokenizer> gpt2(test::TinyVocabulary vocabulary = test::tiny_gpt2()) {
    for (const char* piece : {"{\"", "\":", "\",\"", "\"}", "},", "[[", "]]", "1,", "null", "true", "Ġ1", "\"a", "a\"", "12", "...", "\\\"", "Ġ\"", "Ã©", "ä½"}) {
        vocabulary.tokens.push_back({piece});
    }
    auto tokenizer = test::load_tokenizer(vocabulary, [](gguf::Writer& writer) { writer.add("tokenizer.ggml.pre", "gpt-2"); });
    if (!tokenizer) qFatal("%s", tokenizer.error().message.c_str());
    return std::move(*tokenizer);
}

std::shared_ptr<const text::Grammar> compile(const std::string& schema) {
    auto grammar = text::compile_json_schema(Json::parse(schema));
    if (!grammar) qFatal("%s", grammar.error().message.c_str());
    return std::move(*grammar);
}

std::set<TokenId> allowed(text::Constraint& constraint, int vocabulary) {
    std::vector<float> logits(static_cast<std::size_t>(vocabulary), 0.0f);
    const bool any = constraint.mask(logits);
    std::set<TokenId> ids;
    for (std::size_t id = 0; id < logits.size(); ++id) {
        if (logits[id] == 0) ids.insert(static_cast<TokenId>(id));
    }
    if (any != !ids.empty()) qFatal("mask() says otherwise");
    return ids;
}

}  // namespace

class TestConstraint : public QObject {
    Q_OBJECT

private slots:
    void trie();
    void masks();
    void masks_are_those_of_each_token_alone();
    void ends();
    void utf8_over_tokens();
    void control_tokens();
    void sentence_piece();
    void counted_strings();
    void text_that_is_there_already();
    void too_small_vocabulary();
    void shared_by_generations();
    void random_walks_end_valid();
};

#ifndef Q_MOC_RUN  // moc does not read raw strings with quotes in them

void TestConstraint::trie() {
    const auto tokenizer = gpt2();
    const auto trie = text::TokenTrie::build(*tokenizer);
    QCOMPARE(trie->vocabulary(), tokenizer->size());
    std::set<TokenId> met;
    std::string before;
    for (std::size_t i = 0; i < trie->nodes().size(); ++i) {
        const auto& node = trie->nodes()[i];
        const std::string text(trie->text(i));
        QCOMPARE(text.size(), std::size_t(node.depth));
        QCOMPARE(static_cast<std::uint8_t>(text.back()), node.byte);
        QVERIFY(before < text);
        before = text;
        for (std::size_t k = i + 1; k < trie->nodes().size(); ++k) QCOMPARE(trie->text(k).starts_with(text), k < node.end);
        for (const TokenId id : trie->tokens(i)) {
            QCOMPARE(std::string(trie->bytes(id)), text);
            QVERIFY(met.insert(id).second);
        }
    }
    const std::string mark(1, static_cast<char>(text::kControlMark));
    for (TokenId id = 0; id < tokenizer->size(); ++id) {
        const bool is_end = tokenizer->ends_generation(id);
        const bool is_there = !is_end && id != text::kControlMark;
        QCOMPARE(met.contains(id), is_there);
        std::string written = tokenizer->is_control(id) ? mark + tokenizer->piece(id, true) + mark : tokenizer->piece(id, false);
        QCOMPARE(std::string(trie->bytes(id)), is_there ? written : std::string());
    }
    QCOMPARE(trie->ends().size(), std::size_t(2));
    QVERIFY(trie->bytes(-1).empty() && trie->bytes(tokenizer->size()).empty());
}

void TestConstraint::masks() {
    const auto tokenizer = gpt2();
    const auto trie = text::TokenTrie::build(*tokenizer);
    const auto grammar = std::make_shared<const text::TokenGrammar>(compile(R"({"type":"object","properties":{"a":{"enum":[1,12]}},"required":["a"],"additionalProperties":false})"), trie);
    text::Constraint constraint(grammar);
    const auto texts = [&] {
        std::set<std::string> all;
        for (const TokenId id : allowed(constraint, tokenizer->size())) all.insert(tokenizer->piece(id, true));
        return all;
    };
    const auto take = [&](const char* text) { QVERIFY2(constraint.accept(*tokenizer->find(text)), text); };
    using Texts = std::set<std::string>;
    QCOMPARE(texts(), Texts({"{", " ", "\n", "{\""}));
    take("{\"");
    QCOMPARE(texts(), Texts({"a", "a\""}));
    QVERIFY(!constraint.accept('b'));
    QVERIFY(!constraint.accept(-1) && !constraint.accept(tokenizer->size()));
    take("a");
    take("\":");
    QCOMPARE(texts(), Texts({" ", "1", "12", " 1"}));
    take("Ġ1");
    QCOMPARE(texts(), Texts({"2", "}", " ", "\n"}));
    QVERIFY(!constraint.may_end());
    QCOMPARE(constraint.shortest_ending(), std::string("}"));
    take("}");
    QCOMPARE(texts(), Texts({"<|im_end|>", "<|end_of_text|>"}));
    QVERIFY(constraint.may_end() && constraint.finished());
    QCOMPARE(constraint.shortest_ending(), std::string());
}

// What mask() finds through the trie and what it remembers is what each token by itself says.
void TestConstraint::masks_are_those_of_each_token_alone() {
    const auto tokenizer = gpt2();
    const auto trie = text::TokenTrie::build(*tokenizer);
    std::mt19937 random(1);
    for (const char* schema : {"{}", R"({"type":"array","items":{"type":"string","maxLength":4}})", R"({"type":"object","additionalProperties":{"type":"number","minimum":-3}})",
                               R"({"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"aa":{"type":"integer"},"he":{}}}]})",
                               R"({"type":"string","pattern":"^(hello |l)+$"})"}) {
        const auto grammar = std::make_shared<const text::TokenGrammar>(compile(schema), trie);
        text::Constraint constraint(grammar);
        std::vector<TokenId> path;
        const auto at_path = [&] {
            text::Constraint other(grammar);
            for (const TokenId earlier : path) {
                if (!other.accept(earlier)) qFatal("a token is refused that was taken");
            }
            return other;
        };
        for (int step = 0; step < 40 && !constraint.finished(); ++step) {
            const auto ids = allowed(constraint, tokenizer->size());
            text::Constraint other = at_path();
            for (TokenId id = 0; id < tokenizer->size(); ++id) {
                if (!ids.contains(id)) QVERIFY2(!other.accept(id), tokenizer->piece(id, true).c_str());
                if (ids.contains(id) && id % 11 == step % 11) QVERIFY2(at_path().accept(id), tokenizer->piece(id, true).c_str());
            }
            std::vector<TokenId> choice(ids.begin(), ids.end());
            path.push_back(choice[random() % choice.size()]);
            if (tokenizer->ends_generation(path.back())) break;
            QVERIFY(constraint.accept(path.back()));
        }
    }
}

void TestConstraint::ends() {
    const auto tokenizer = gpt2();
    const auto grammar = std::make_shared<const text::TokenGrammar>(compile(R"({"type":"integer"})"), text::TokenTrie::build(*tokenizer));
    text::Constraint constraint(grammar);
    const TokenId end = *tokenizer->find("<|im_end|>");
    QVERIFY(!constraint.accept(end));
    QVERIFY(constraint.accept('7'));
    QVERIFY(constraint.may_end() && !constraint.finished());
    QVERIFY(allowed(constraint, tokenizer->size()).contains(end));
    QVERIFY(constraint.accept(end));
    QVERIFY(constraint.finished());
    QVERIFY(!constraint.accept('7'));
    // Beyond the vocabulary there is nothing.
    QVERIFY(!allowed(constraint, tokenizer->size() + 100).contains(tokenizer->size() + 50));
}

void TestConstraint::utf8_over_tokens() {
    const auto tokenizer = gpt2();
    const auto grammar = std::make_shared<const text::TokenGrammar>(compile(R"({"type":"string"})"), text::TokenTrie::build(*tokenizer));
    text::Constraint constraint(grammar);
    QVERIFY(constraint.accept('"'));
    QVERIFY(constraint.accept(*tokenizer->find("ä½")));  // the first two bytes of U+4F60
    const auto ids = allowed(constraint, tokenizer->size());
    for (TokenId id = 0; id < tokenizer->size(); ++id) QCOMPARE(ids.contains(id), id >= 0x80 && id <= 0xBF);
    QVERIFY(!constraint.accept('"'));
    QVERIFY(constraint.accept(0xA0));
    QVERIFY(constraint.accept('"'));
    QVERIFY(constraint.finished());
}

void TestConstraint::control_tokens() {
    const auto tokenizer = gpt2();
    const auto grammar = std::make_shared<const text::TokenGrammar>(compile("{}"), text::TokenTrie::build(*tokenizer));
    text::Constraint constraint(grammar);
    QVERIFY(constraint.accept('"'));
    const auto ids = allowed(constraint, tokenizer->size());
    QVERIFY(!ids.contains(*tokenizer->find("<|start|>")));
    QVERIFY(ids.contains(*tokenizer->find("<think>")));  // user-defined: text
}

void TestConstraint::sentence_piece() {
    auto tokenizer = test::load_tokenizer(test::tiny_llama());
    QVERIFY(tokenizer);
    const auto grammar = std::make_shared<const text::TokenGrammar>(compile(R"({"const":"hello"})"), text::TokenTrie::build(**tokenizer));
    text::Constraint constraint(grammar);
    QVERIFY(constraint.accept(*(*tokenizer)->find("▁")));
    QVERIFY(constraint.accept(3 + '"'));
    QVERIFY(!constraint.accept(*(*tokenizer)->find("▁hello")));
    QVERIFY(constraint.accept(*(*tokenizer)->find("hell")));
    QVERIFY(constraint.accept(3 + 'o'));
    QVERIFY(constraint.accept(3 + '"'));
    QVERIFY(constraint.finished());
    QCOMPARE(allowed(constraint, (*tokenizer)->size()), std::set<TokenId>({2}));
}

void TestConstraint::counted_strings() {
    const auto tokenizer = gpt2();
    const auto trie = text::TokenTrie::build(*tokenizer);
    const auto grammar = std::make_shared<const text::TokenGrammar>(compile(R"({"type":"string","minLength":40,"maxLength":60})"), trie);
    text::Constraint constraint(grammar);
    QVERIFY(constraint.accept('"'));
    const TokenId four = *tokenizer->find("aaaa"), two = *tokenizer->find("aa"), quote_end = *tokenizer->find("a\"");
    for (int length = 0; length <= 60; ++length) {
        const auto ids = allowed(constraint, tokenizer->size());
        QCOMPARE(ids.contains('"'), length >= 40);
        QCOMPARE(ids.contains(quote_end), length >= 39 && length <= 59);
        QCOMPARE(ids.contains(four), length <= 56);
        QCOMPARE(ids.contains(two), length <= 58);
        QCOMPARE(constraint.shortest_ending(), std::string(static_cast<std::size_t>(std::max(0, 40 - length)), ' ') + '"');
        if (length < 60) QVERIFY(constraint.accept('x'));
    }
}

void TestConstraint::text_that_is_there_already() {
    const auto tokenizer = gpt2();
    const auto grammar = std::make_shared<const text::TokenGrammar>(compile(R"({"enum": ["ab", "ac", 12]})"), text::TokenTrie::build(*tokenizer));
    text::Constraint begun(grammar);
    QVERIFY(begun.accept_text("\"a"));
    text::Constraint token(grammar);
    for (const TokenId id : tokenizer->encode("\"a", {.parse_special = false, .add_bos = false})) QVERIFY(token.accept(id));
    QCOMPARE(allowed(begun, tokenizer->size()), allowed(token, tokenizer->size()));
    // What does not fit changes nothing.
    QVERIFY(!begun.accept_text("x"));
    QVERIFY(!begun.accept_text("b\"x"));
    QCOMPARE(allowed(begun, tokenizer->size()), allowed(token, tokenizer->size()));
    QVERIFY(begun.accept_text("") && !begun.may_end());
    QVERIFY(begun.accept_text("c\"") && begun.finished());
}

void TestConstraint::too_small_vocabulary() {
    test::TinyVocabulary vocabulary{"gpt2", {{"{"}, {"a"}}, {}};
    const auto tokenizer = test::load_tokenizer(vocabulary, [](gguf::Writer& writer) { writer.add("tokenizer.ggml.pre", "gpt-2"); });
    QVERIFY(tokenizer);
    text::Constraint constraint(std::make_shared<const text::TokenGrammar>(text::any_json_object(), text::TokenTrie::build(**tokenizer)));
    QCOMPARE(allowed(constraint, 2), std::set<TokenId>({0}));
    QVERIFY(constraint.accept(0));
    QVERIFY(allowed(constraint, 2).empty());
    QVERIFY(!constraint.may_end());
}

void TestConstraint::shared_by_generations() {
    const auto tokenizer = gpt2();
    const auto grammar = std::make_shared<const text::TokenGrammar>(text::any_json_object(), text::TokenTrie::build(*tokenizer));
    std::vector<std::thread> threads;
    std::vector<std::string> texts(4);
    for (std::size_t t = 0; t < texts.size(); ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(7);
            text::Constraint constraint(grammar);
            for (int step = 0; step < 100 && !constraint.finished(); ++step) {
                const auto ids = allowed(constraint, tokenizer->size());
                std::vector<TokenId> choice(ids.begin(), ids.end());
                const TokenId id = choice[random() % choice.size()];
                texts[t] += tokenizer->piece(id, false);
                if (!constraint.accept(id)) texts[t] += "refused";
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) QCOMPARE(text, texts[0]);
}

void TestConstraint::random_walks_end_valid() {
    const auto tokenizer = gpt2();
    const auto trie = text::TokenTrie::build(*tokenizer);
    std::mt19937 random(3);
    for (const char* schema : {"{}", R"({"type":"object","properties":{"a":{"type":"string","pattern":"^x+y"},"b":{"type":"array","items":{"type":"number","maximum":3}}},"required":["b"]})"}) {
        const auto grammar = compile(schema);
        const auto over = std::make_shared<const text::TokenGrammar>(grammar, trie);
        for (int walk = 0; walk < 30; ++walk) {
            text::Constraint constraint(over);
            std::string text;
            for (int step = 0; step < 50 && !constraint.finished(); ++step) {
                const auto ids = allowed(constraint, tokenizer->size());
                std::vector<TokenId> choice(ids.begin(), ids.end());
                const TokenId id = choice[random() % choice.size()];
                QVERIFY(constraint.accept(id));
                text += tokenizer->piece(id, false);
            }
            if (!constraint.may_end()) text += constraint.shortest_ending();
            QVERIFY2(grammar->matches(text), text.c_str());
            QVERIFY2(!Json::parse(text, nullptr, false).is_discarded(), text.c_str());
        }
    }
}

#endif

QTEST_GUILESS_MAIN(TestConstraint)
#include "tst_constraint.moc"
