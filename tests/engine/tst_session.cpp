// Sessions: answers, prefix reuse, stop sequences, the end of the context, cancelling, several at once.

#include <algorithm>
#include <thread>

#include <QTest>

#include "core/text/json_schema.h"
#include "tests/engine/loaded_model.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::test;

namespace {

const SyntheticModel kModel{.family = "qwen3moe", .feed_forward = 32, .experts = 4, .experts_used = 2, .context = 700, .qk_norm = true};

// Ids of bytes, none of which ends an answer.
std::vector<TokenId> text_tokens(std::size_t count, std::uint64_t seed) {
    std::vector<TokenId> tokens = random_tokens(count, seed);
    for (TokenId& token : tokens) token %= 256;
    return tokens;
}

GenerateRequest greedy(std::vector<TokenId> prompt, int max_tokens) {
    return {.prompt = std::move(prompt), .sampling = {.temperature = 0}, .max_tokens = max_tokens, .ignore_end = true};
}

}  // namespace

class TstSession : public QObject {
    Q_OBJECT

    std::unique_ptr<LoadedModel> model_;

private slots:
    void initTestCase() { model_ = std::make_unique<LoadedModel>(kModel); }
    void cleanupTestCase() { model_.reset(); }

    void the_text_is_what_was_streamed() {
        const auto session = model_->new_session();
        std::string streamed;
        std::vector<std::pair<int, int>> prompt_progress;
        GenerateCallbacks callbacks;
        callbacks.on_text = [&](std::string_view text, const GenerateStats& stats) {
            streamed += text;
            QVERIFY(stats.completion_tokens > 0);
        };
        callbacks.on_prompt = [&](int done, int total) { prompt_progress.emplace_back(done, total); };
        const auto prompt = text_tokens(300, 1);
        const GenerateResult result = must(session->generate(greedy(prompt, 40), callbacks));
        QCOMPARE(result.finish, FinishReason::length);
        QCOMPARE(result.tokens.size(), 40u);
        QCOMPARE(streamed, result.text);
        QCOMPARE(result.stats.prompt_tokens, 300);
        QCOMPARE(result.stats.reused_tokens, 0);
        QCOMPARE(result.stats.completion_tokens, 40);
        QVERIFY(result.stats.prompt_tps() > 0);
        QVERIFY(result.stats.completion_tps() > 0);
        const std::vector<std::pair<int, int>> expected_progress{{256, 300}, {300, 300}};
        QCOMPARE(prompt_progress, expected_progress);
        // What was read: all but the last token, which nobody has asked about yet.
        QCOMPARE(session->tokens().size(), 339u);
        QVERIFY(session->kv_bytes() > 0);
        QVERIFY(QString::fromUtf8(result.text.c_str()).toUtf8().toStdString() == result.text);  // valid UTF-8
    }

    void a_common_prefix_is_not_read_again() {
        const auto session = model_->new_session();
        const auto prompt = text_tokens(290, 2);
        const GenerateResult first = must(session->generate(greedy(prompt, 20)));

        // The same again: one token is read, the answer is the same.
        const GenerateResult again = must(session->generate(greedy(prompt, 20)));
        QCOMPARE(again.stats.reused_tokens, 289);
        QCOMPARE(again.tokens, first.tokens);

        // The conversation goes on.
        std::vector<TokenId> longer = prompt;
        longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
        const auto more = text_tokens(30, 3);
        longer.insert(longer.end(), more.begin(), more.end());
        const GenerateResult on = must(session->generate(greedy(longer, 20)));
        QCOMPARE(on.stats.reused_tokens, 309);

        // It takes another way from the middle on.
        std::vector<TokenId> other(longer.begin(), longer.begin() + 100);
        const auto end = text_tokens(50, 4);
        other.insert(other.end(), end.begin(), end.end());
        other[100] = (longer[100] + 1) % 256;
        const GenerateResult turned = must(session->generate(greedy(other, 20)));
        QCOMPARE(turned.stats.reused_tokens, 100);

        // Both as a new session says them.
        QCOMPARE(on.tokens, must(model_->new_session()->generate(greedy(longer, 20))).tokens);
        QCOMPARE(turned.tokens, must(model_->new_session()->generate(greedy(other, 20))).tokens);

        session->clear();
        QCOMPARE(session->tokens().size(), 0u);
        QCOMPARE(session->kv_bytes(), 0u);
        QCOMPARE(must(session->generate(greedy(prompt, 20))).tokens, first.tokens);
    }

    void seeds_reproduce() {
        GenerateRequest request = greedy(text_tokens(20, 5), 30);
        request.sampling = {.temperature = 1, .seed = 7};
        const auto first = must(model_->new_session()->generate(request));
        QCOMPARE(must(model_->new_session()->generate(request)).tokens, first.tokens);
        request.sampling.seed = 8;
        QVERIFY(must(model_->new_session()->generate(request)).tokens != first.tokens);
    }

    void an_end_token_ends_the_answer() {
        const auto session = model_->new_session();
        GenerateRequest request = greedy(text_tokens(20, 6), 50);
        request.sampling.logit_bias = {{258, 1000.0f}};
        const GenerateResult all = must(session->generate(request));
        QCOMPARE(all.finish, FinishReason::length);
        QCOMPARE(all.tokens, std::vector<TokenId>(50, 258));
        QCOMPARE(all.text, std::string());
        request.show_special = true;
        request.max_tokens = 2;
        QCOMPARE(must(session->generate(request)).text, std::string("<|im_end|><|im_end|>"));
        request.ignore_end = false;
        const GenerateResult ended = must(session->generate(request));
        QCOMPARE(ended.finish, FinishReason::stop);
        QCOMPARE(ended.tokens, std::vector<TokenId>{258});
        QCOMPARE(ended.text, std::string());
    }

    // Every token is one byte here: stop sequences and characters always cross tokens.
    void stop_sequences_and_split_characters() {
        const auto session = model_->new_session();
        GenerateRequest request = greedy(text_tokens(20, 7), 60);
        for (TokenId id = 0; id < kSyntheticVocabulary; ++id) {
            if (id < 'a' || id > 'z') request.sampling.logit_bias[id] = -100;  // an answer of letters
        }
        request.sampling.temperature = 1;
        request.sampling.seed = 3;
        const GenerateResult whole = must(session->generate(request));
        QCOMPARE(whole.text.size(), 60u);
        const std::string stop = whole.text.substr(30, 3);
        request.stops = {"###", stop};
        std::string streamed;
        const GenerateResult stopped = must(session->generate(request, {.on_text = [&](std::string_view text, auto&) { streamed += text; }}));
        QCOMPARE(stopped.finish, FinishReason::stop);
        QCOMPARE(stopped.text, whole.text.substr(0, whole.text.find(stop)));
        QCOMPARE(streamed, stopped.text);

        // A beginning that never becomes the stop is given out at the end.
        request.stops = {whole.text.substr(58) + "#"};
        QCOMPARE(must(session->generate(request)).text, whole.text);

        // Only the two bytes of "é": each comes out whole, and a half one at the end as U+FFFD.
        GenerateRequest accents = greedy(text_tokens(20, 7), 3);
        accents.sampling.logit_bias = {{0xC3, 1000.0f}, {0xA9, 900.0f}};
        accents.sampling.frequency_penalty = 60;
        accents.sampling.presence_penalty = 50;
        accents.sampling.penalty_window = 1;
        std::vector<std::string> pieces;
        const GenerateResult result = must(session->generate(accents, {.on_text = [&](std::string_view text, auto&) { pieces.emplace_back(text); }}));
        const std::vector<TokenId> expected{0xC3, 0xA9, 0xC3};
        QCOMPARE(result.tokens, expected);
        const std::vector<std::string> expected_pieces{"é", "\xEF\xBF\xBD"};
        QCOMPARE(pieces, expected_pieces);
    }

    void the_context_ends_an_answer() {
        const LoadedModel small(kModel, 64);
        QCOMPARE(small.get()->info().context, 64);
        const auto session = small.new_session();
        const GenerateResult result = must(session->generate(greedy(text_tokens(50, 8), -1)));
        QCOMPARE(result.finish, FinishReason::length);
        QCOMPARE(result.tokens.size(), 14u);

        const GenerateResult full = must(session->generate(greedy(text_tokens(64, 8), -1)));
        QCOMPARE(full.finish, FinishReason::length);
        QCOMPARE(full.tokens.size(), 0u);

        const auto refused = session->generate(greedy(text_tokens(65, 8), -1));
        QVERIFY(!refused);
        QCOMPARE(refused.error().kind, ErrorKind::context_full);
        QVERIFY(refused.error().message.find("65") != std::string::npos);
        QVERIFY(refused.error().message.find("64") != std::string::npos);
        QCOMPARE(must(session->generate(greedy(text_tokens(50, 8), -1))).tokens, result.tokens);
    }

    void refuses_what_makes_no_sense() {
        const auto session = model_->new_session();
        const auto kind = [&](const GenerateRequest& request) {
            const auto result = session->generate(request);
            return result ? ErrorKind::internal : result.error().kind;
        };
        QCOMPARE(kind(greedy({}, 1)), ErrorKind::invalid_argument);
        QCOMPARE(kind(greedy({1, -1}, 1)), ErrorKind::invalid_argument);
        QCOMPARE(kind(greedy({1, kSyntheticVocabulary}, 1)), ErrorKind::invalid_argument);
        GenerateRequest request = greedy({1}, 1);
        request.sampling.temperature = -1;
        QCOMPARE(kind(request), ErrorKind::invalid_argument);
        request = greedy({1}, 1);
        request.sampling.logit_bias = {{kSyntheticVocabulary, 1.0f}};
        QCOMPARE(kind(request), ErrorKind::invalid_argument);
        const std::vector<TokenId> tokens{1, 2, 3};
        for (const std::vector<int>& positions : {std::vector<int>{3}, {-1}, {1, 1}, {2, 0}}) {
            const auto result = session->evaluate(tokens, positions, [](int, std::span<const float>) {});
            QVERIFY(!result);
            QCOMPARE(result.error().kind, ErrorKind::invalid_argument);
        }
        QCOMPARE(must(session->generate(greedy(tokens, 0))).finish, FinishReason::length);
    }

    void cancelling_while_the_prompt_is_read() {
        const auto session = model_->new_session();
        const auto prompt = text_tokens(600, 9);
        std::stop_source stop;
        const GenerateResult result = must(session->generate(greedy(prompt, 10), {.on_prompt = [&](int, int) { stop.request_stop(); }},
                                                             stop.get_token()));
        QCOMPARE(result.finish, FinishReason::cancelled);
        QVERIFY(result.text.empty());
        QCOMPARE(session->tokens().size(), 256u);

        // What was read stays read, and the answer is the one of a new session.
        const GenerateResult on = must(session->generate(greedy(prompt, 10)));
        QCOMPARE(on.stats.reused_tokens, 256);
        QCOMPARE(on.tokens, must(model_->new_session()->generate(greedy(prompt, 10))).tokens);
    }

    void cancelling_an_answer_keeps_its_text() {
        const auto session = model_->new_session();
        const auto prompt = text_tokens(30, 10);
        GenerateRequest request = greedy(prompt, 100);
        for (TokenId id = 0; id < kSyntheticVocabulary; ++id) {
            if (id < 'a' || id > 'z') request.sampling.logit_bias[id] = -100;
        }
        const GenerateResult whole = must(model_->new_session()->generate(request));
        std::stop_source stop;
        std::string streamed;
        const GenerateCallbacks callbacks{.on_text = [&](std::string_view text, auto&) {
            streamed += text;
            if (streamed.size() >= 5) stop.request_stop();
        }};
        const GenerateResult cut = must(session->generate(request, callbacks, stop.get_token()));
        QCOMPARE(cut.finish, FinishReason::cancelled);
        QCOMPARE(cut.text, whole.text.substr(0, 5));
        QCOMPARE(streamed, cut.text);
        QCOMPARE(must(session->generate(request)).text, whole.text);
        QCOMPARE(must(session->generate(request, {}, stop.get_token())).finish, FinishReason::cancelled);
    }

    void evaluate_gives_the_logits_of_the_answer() {
        const auto prompt = text_tokens(280, 11);
        const auto answer = must(model_->new_session()->generate(greedy(prompt, 10))).tokens;
        std::vector<TokenId> all = prompt;
        all.insert(all.end(), answer.begin(), answer.end());
        std::vector<int> positions;
        for (int i = 0; i < 10; ++i) positions.push_back(279 + i);
        const auto session = model_->new_session();
        std::vector<TokenId> best;
        std::vector<int> seen;
        must(session->evaluate(all, positions, [&](int position, std::span<const float> logits) {
            seen.push_back(position);
            best.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
        }));
        QCOMPARE(seen, positions);
        QCOMPARE(best, answer);
        QCOMPARE(session->tokens().size(), 290u);
    }

    // Sessions of several threads take turns; each says what it says alone.
    void sessions_take_turns() {
        std::vector<std::vector<TokenId>> alone(3);
        std::vector<std::vector<TokenId>> together(3);
        const auto answer = [&](std::size_t i) {
            return must(model_->new_session()->generate(greedy(text_tokens(100 + 200 * i, 20 + i), 30))).tokens;
        };
        for (std::size_t i = 0; i < alone.size(); ++i) alone[i] = answer(i);
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < together.size(); ++i) threads.emplace_back([&, i] { together[i] = answer(i); });
        }
        QCOMPARE(together, alone);
    }

    void an_answer_is_held_to_a_grammar() {
        const auto schema = text::Json::parse("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"enum\":[\"x\",\"yy\"]}},\"required\":[\"a\",\"b\"]}");
        const auto grammar = must(text::compile_json_schema(schema));
        const auto over = std::make_shared<const text::TokenGrammar>(grammar, model_->get()->token_trie());
        QVERIFY(model_->get()->token_trie() == model_->get()->token_trie());
        const auto session = model_->new_session();
        for (const float temperature : {0.0f, 2.0f}) {
            GenerateRequest request{.prompt = text_tokens(20, 5), .sampling = {.temperature = temperature, .seed = 4}, .max_tokens = 200};
            request.grammar = over;
            const GenerateResult result = must(session->generate(request));
            QCOMPARE(result.finish, FinishReason::stop);
            QVERIFY2(grammar->matches(result.text), result.text.c_str());
        }
        // Cut off by the limit; refused where it cannot be.
        GenerateRequest request{.prompt = text_tokens(20, 5), .max_tokens = 2};
        request.grammar = over;
        QCOMPARE(must(session->generate(request)).finish, FinishReason::length);
        request.ignore_end = true;
        QCOMPARE(session->generate(request).error().kind, ErrorKind::invalid_argument);
        request.ignore_end = false;
        for (const char c : std::string("{ \n")) request.sampling.logit_bias[model_->get()->tokenizer().encode(std::string(1, c), {.add_bos = false}).at(0)] = -100;
        QCOMPARE(session->generate(request).error().message,
                 std::string("The logit bias rules out every token with which the answer could go on by its schema"));
    }

    void a_waiting_session_can_be_cancelled() {
        // The first one holds its turn inside a callback of evaluate until the second has come back cancelled.
        const auto first = model_->new_session();
        const auto second = model_->new_session();
        std::stop_source stop;
        FinishReason finish = FinishReason::stop;
        const std::vector<TokenId> tokens{1, 2, 3};
        const std::vector<int> last{2};
        must(first->evaluate(tokens, last, [&](int, std::span<const float>) {
            std::jthread thread([&] { finish = must(second->generate(greedy(tokens, 5), {}, stop.get_token())).finish; });
            stop.request_stop();
        }));
        QCOMPARE(finish, FinishReason::cancelled);
        QCOMPARE(must(second->generate(greedy(tokens, 5))).finish, FinishReason::length);
    }
};

QTEST_GUILESS_MAIN(TstSession)
#include "tst_session.moc"
