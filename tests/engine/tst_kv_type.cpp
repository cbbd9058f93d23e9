// Keys and values of 8 bits through the whole engine: the built-in model's words do not depend on how a prompt comes to be read.

#include <QTest>

#include "core/engine/scheduler.h"
#include "tests/model/model_runner.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::test;

namespace {

constexpr const char* kQuestions[] = {"What is the reserve?", "Hello!", "Define house."};

std::shared_ptr<Model> load(KvType type, int threads) {
    return must(Model::load({.path = must(find_model("builtin", {})), .threads = threads, .kv_type = type, .device = "cpu"}));
}

GenerateRequest ask(const Model& model, const std::string& question) {
    GenerateRequest request;
    request.prompt = must(model.chat_prompt({{"messages", {{{"role", "user"}, {"content", question}}}}}));
    request.sampling.temperature = 0;
    request.max_tokens = 12;
    return request;
}

// A question behind so much text that its prompt takes two pages.
std::string long_question(const std::string& question) {
    std::string text;
    for (int i = 0; i < 32; ++i) text += "The reserve is memory that stays free. ";
    return text + question;
}

}  // namespace

class TstKvType : public QObject {
    Q_OBJECT

    std::shared_ptr<Model> model_, halves_;

private slots:
    void initTestCase() {
        model_ = load(KvType::q8_0, 2);
        halves_ = load(KvType::f16, 2);
    }
    void cleanupTestCase() {
        model_.reset();
        halves_.reset();
    }

    // The guide's answers are those of halves: its margins are wide.
    void answers_as_with_halves() {
        QVERIFY(model_->info().kv_type == KvType::q8_0 && halves_->info().kv_type == KvType::f16);
        for (const char* question : kQuestions) {
            const auto codes = must(must(Session::create(model_))->generate(ask(*model_, question)));
            QVERIFY(!codes.text.empty());
            QCOMPARE(codes.text, must(must(Session::create(halves_))->generate(ask(*halves_, question))).text);
        }
    }

    void takes_little_more_than_half_the_memory() {
        const auto bytes_of = [](const std::shared_ptr<Model>& model) {
            const auto session = must(Session::create(model));
            must(session->generate(ask(*model, "Hello!")));
            return session->kv_bytes();
        };
        const std::uint64_t codes = bytes_of(model_);
        QVERIFY(codes > 0);
        QCOMPARE(codes * 32, bytes_of(halves_) * 17);
    }

    void threads_and_pieces_change_no_word() {
        const GenerateRequest request = ask(*model_, long_question("What is the reserve?"));
        QVERIFY(request.prompt.size() > 270);
        const auto right = must(must(Session::create(model_))->generate(request)).tokens;
        for (const int threads : {1, 3}) {
            const auto other = load(KvType::q8_0, threads);
            QCOMPARE(must(must(Session::create(other))->generate(request)).tokens, right);
        }
        // The prompt read in ragged pieces: the session goes on with what it has.
        for (const std::size_t piece : {std::size_t{37}, std::size_t{113}}) {
            const auto session = must(Session::create(model_));
            for (std::size_t end = piece; end < request.prompt.size(); end += piece) {
                GenerateRequest part = request;
                part.prompt.resize(end);
                part.max_tokens = 1;
                must(session->generate(part));
            }
            QCOMPARE(must(session->generate(request)).tokens, right);
        }
        // The rest, across the page's end, token by token beside another conversation.
        const auto session = must(Session::create(model_)), beside = must(Session::create(model_));
        const std::size_t before = 250;
        GenerateRequest beginning = request;
        beginning.prompt.resize(before);
        beginning.max_tokens = 1;
        must(session->generate(beginning));
        std::vector<TokenId> said;
        for (std::size_t i = before; said.size() < right.size(); ++i) {
            const TokenId token = i < request.prompt.size() ? request.prompt[i] : said.back();
            const std::vector<Session::Step> steps{{beside.get(), request.prompt[i % 100]}, {session.get(), token}};
            must(Session::choose_together(steps, [&](std::size_t which, TokenId next) {
                if (which == 1 && i + 1 >= request.prompt.size()) said.push_back(next);
            }));
        }
        QCOMPARE(said, right);
    }

    // Together, and with beginnings that are copied from one another.
    void company_and_copies_change_no_word() {
        std::vector<GenerateRequest> requests;
        std::vector<std::string> right;
        for (const char* question : kQuestions) {
            requests.push_back(ask(*model_, long_question(question)));
            right.push_back(must(must(Session::create(model_))->generate(requests.back())).text);
        }
        Scheduler scheduler(model_, {});
        std::vector<std::shared_ptr<Generation>> running;
        for (const GenerateRequest& request : requests) running.push_back(must(scheduler.submit(request)));
        for (std::size_t i = 0; i < running.size(); ++i) {
            std::string text;
            for (bool ended = false; !ended;) {
                const Generation::News news = running[i]->wait(std::chrono::seconds(60));
                text += news.text;
                ended = news.ended;
            }
            QVERIFY(running[i]->outcome().has_value());
            QCOMPARE(text, right[i]);
        }
        // The two others had at least the first one's first piece; what it had read behind that when they looked, they may have read themselves.
        QVERIFY(scheduler.figures().reused_tokens >= 2 * 256);
    }
};

QTEST_GUILESS_MAIN(TstKvType)
#include "tst_kv_type.moc"
