// The trained model answers the handwritten questions of shared/models/eval.json as well as its README says, in every quantization.

#include <algorithm>
#include <fstream>

#include <QTest>
#include <nlohmann/json.hpp>

#include "core/engine/engine.h"
#include "tests/model/model_runner.h"
#include "tests/support/shared_data.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::test;

namespace {

std::string lower(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
}

// Right: of every entry at least one alternative occurs, ignoring case.
bool is_right(const std::string& answer, const nlohmann::json& keys) {
    const std::string text = lower(answer);
    return std::ranges::all_of(keys, [&](const nlohmann::json& alternatives) {
        return std::ranges::any_of(alternatives, [&](const nlohmann::json& key) { return text.find(lower(key.get<std::string>())) != std::string::npos; });
    });
}

}  // namespace

class TstGuideQuestions : public QObject {
    Q_OBJECT

private slots:
    void right_answers_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"guide-f16.gguf", "guide-q8_0.gguf", "guide-q4_k_m.gguf", "guide-iq4_xs.gguf"}) QTest::newRow(name) << name;
    }

    void right_answers() {
        QFETCH(QString, name);
        const auto questions = shared_data("models/eval.json");
        if (questions.empty()) QSKIP(missing_shared("models/eval.json"));
        std::ifstream in(questions);
        const auto eval = nlohmann::json::parse(in);
        const auto model = must(Model::load({.path = shared_data("models/" + name.toStdString())}));
        const auto session = must(Session::create(model));
        int asked = 0;
        int right = 0;
        int word_for_word = 0;
        for (const auto& question : eval.at("questions")) {
            if (question.at("kind") != "handwritten") continue;
            const text::Json context{{"messages", {{{"role", "user"}, {"content", question.at("question").get<std::string>()}}}}};
            const GenerateResult result = must(session->generate(
                {.prompt = must(model->chat_prompt(context)), .sampling = {.temperature = 0}, .max_tokens = 200}));
            ++asked;
            right += is_right(result.text, question.at("keys")) ? 1 : 0;
            word_for_word += result.text == question.at("answer_f16").get<std::string>() ? 1 : 0;
        }
        const double share = eval.at("accuracy_handwritten_by_file").at(name.toStdString());
        const double expected = share * asked;
        qInfo("%s: %d of %d right, expected %.0f; %d equal the F16 answer word for word", qPrintable(name), right, asked, expected, word_for_word);
        QCOMPARE(asked, 106);
        QVERIFY(std::abs(right - expected) <= 3.5);  // 3 answers; the share is rounded
        if (name == "guide-f16.gguf") QVERIFY(word_for_word >= 100);
    }
};

QTEST_GUILESS_MAIN(TstGuideQuestions)
#include "tst_guide_questions.moc"
