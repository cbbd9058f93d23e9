#include <QElapsedTimer>
#include <QFile>
#include <QTest>

#include <cmath>

#include "tests/cli/cli_process.h"
#include "tests/support/shared_data.h"

#ifdef Q_OS_UNIX
#include <csignal>
#endif

using namespace headroom::test;
using json = nlohmann::ordered_json;

namespace {

const QStringList kGreedy{"--temp", "0"};
const QStringList kShort{"--temp", "0", "-n", "12"};  // an unoptimized build answers slowly
const QString kQuestion = "What is the reserve?";

}  // namespace

// chat, complete, eval, perplexity, bench with the built-in model.
class TestCliAnswers : public QObject {
    Q_OBJECT

private:
    Cli cli_;

private slots:
    void chat_once() {
        const auto plain = cli_.run(QStringList{"chat", "-p", kQuestion} + kGreedy);
        QCOMPARE(plain.code, 0);
        QCOMPARE(plain.error, QByteArray());
        QVERIFY2(plain.out.contains("reserve") && plain.out.endsWith(".\n") && plain.out.count('\n') == 1, plain.out.constData());

        const auto result = cli_.run(QStringList{"chat", "-p", kQuestion, "--json"} + kGreedy);
        QCOMPARE(result.code, 0);
        QCOMPARE(result.error, QByteArray());
        const json answer = result.json();
        QCOMPARE(answer["text"].get<std::string>() + "\n", plain.out.toStdString());
        QCOMPARE(answer["finish_reason"].get<std::string>(), std::string("stop"));
        QCOMPARE(answer["prompt_tokens"].get<int>(), 16);
        QVERIFY(answer["completion_tokens"].get<int>() > 5);
        QVERIFY(answer["prompt_tps"].get<double>() > 0);
        QVERIFY(answer["completion_tps"].get<double>() > 0);
        // The same over a pipe.
        const json piped = cli_.run(QStringList{"chat", "--json"} + kShort, kQuestion.toUtf8()).json();
        QVERIFY(answer["text"].get<std::string>().starts_with(piped["text"].get<std::string>()));
        QVERIFY(piped["prompt_tokens"] == answer["prompt_tokens"]);
    }

    void chat_options() {
        const auto ask = [&](const QStringList& more) { return cli_.run(QStringList{"chat", "-p", kQuestion, "--json"} + more).json(); };
        const json whole = ask(kShort);
        const std::string text = whole["text"];

        const json cut = ask(kGreedy + QStringList{"-n", "3"});
        QCOMPARE(cut["finish_reason"].get<std::string>(), std::string("length"));
        QCOMPARE(cut["completion_tokens"].get<int>(), 3);
        QVERIFY(text.starts_with(cut["text"].get<std::string>()));

        const json stopped = ask(kShort + QStringList{"--stop", "nowhere", "--stop", "reserve"});
        QCOMPARE(stopped["finish_reason"].get<std::string>(), std::string("stop"));
        QCOMPARE(stopped["text"].get<std::string>(), text.substr(0, text.find("reserve")));

        // The context's end: 16 tokens of prompt, 4 of answer.
        const json full = ask(kGreedy + QStringList{"--ctx", "20"});
        QCOMPARE(full["finish_reason"].get<std::string>(), std::string("length"));
        QCOMPARE(full["completion_tokens"].get<int>(), 4);

        const QStringList hot{"--temp", "3", "--top-k", "0", "--top-p", "1", "-n", "6"};
        const json one = ask(hot + QStringList{"--seed", "1"});
        QVERIFY(ask(hot + QStringList{"--seed", "1", "--threads", "1"})["text"] == one["text"]);
        QVERIFY(ask(hot + QStringList{"--seed", "2"})["text"] != one["text"]);
        QVERIFY(ask(kGreedy + QStringList{"-n", "1", "--system", "You are a helpful assistant."})["prompt_tokens"].get<int>() > 16);
    }

    // Control tokens in a question are text, the template's own are tokens.
    void chat_plain_text() {
        const auto ask = [&](const QString& text) {
            return cli_.run(QStringList{"chat", "--json", "-n", "1", "-p", text} + kGreedy).json()["prompt_tokens"].get<int>();
        };
        const int around = ask("a") - 1;
        QCOMPARE(ask("a<|im_end|>") - around, 1 + 7);
    }

    void conversation_over_pipes() {
        const auto result = cli_.run(QStringList{"chat"} + kShort,
                                     "What is the reserve?\n\n/system\n/nothing\n/clear\r\nWhat is\\\nthe reserve?\n/exit\nHello\n");
        QCOMPARE(result.code, 0);
        const auto lines = result.out.split('\n');
        QCOMPARE(lines.size(), qsizetype(3));  // two answers
        QVERIFY(lines[0].contains("reserve"));
        QVERIFY(!lines[1].isEmpty());
        QCOMPARE(lines[2], QByteArray());
        QCOMPARE(result.error, QByteArray("There is no system prompt now.\nThere is no command /nothing; /help lists them.\n"
                                          "The conversation is forgotten.\n"));
        // The end of the input ends it too; text that only looks like a command is text.
        const auto path = cli_.run(QStringList{"chat"} + kShort, "/etc/passwd is what?");
        QCOMPARE(path.code, 0);
        QCOMPARE(path.error, QByteArray());
        QVERIFY(path.out.size() > 1);
        QVERIFY(cli_.run({"chat"}, "/help\n").error.contains("/clear"));
        // A second question sees the first.
        const auto follow = cli_.run(QStringList{"chat", "--ctx", "45"} + kShort, (kQuestion + "\n" + kQuestion + "\n" + kQuestion + "\n").toUtf8());
        QCOMPARE(follow.code, 1);
        QVERIFY(follow.error.contains("context holds 45"));
    }

    void complete() {
        const QStringList prompt{"complete", "-p", "<|im_start|>user\nWhat is the reserve?<|im_end|>\n<|im_start|>assistant\n", "--json"};
        const json chat = cli_.run(QStringList{"chat", "-p", kQuestion, "--json"} + kShort).json();
        const json special = cli_.run(prompt + kShort + QStringList{"--special"}).json();
        QVERIFY(special["text"] == chat["text"]);
        QVERIFY(special["prompt_tokens"] == chat["prompt_tokens"]);
        const json plain = cli_.run(prompt + kGreedy + QStringList{"-n", "4"}).json();
        QVERIFY(plain["prompt_tokens"].get<int>() > chat["prompt_tokens"].get<int>());
        const auto piped = cli_.run(QStringList{"complete", "-n", "4"} + kGreedy, "The noun house means");
        QCOMPARE(piped.code, 0);
        const json same = cli_.run(QStringList{"complete", "-n", "4", "--json", "-p", "The noun house means"} + kGreedy).json();
        QCOMPARE(piped.out.toStdString(), same["text"].get<std::string>() + "\n");
    }

    void eval() {
        const QString tokens = cli_.write("tokens.json", R"({"tokens": [8190, 430, 198, 332, 274], "positions": [0, 4]})");
        const auto result = cli_.run({"eval", "--tokens", tokens, "--top", "5", "--greedy", "3", "--json"});
        QCOMPARE(result.code, 0);
        QCOMPARE(result.error, QByteArray());
        const json json_result = result.json();
        const json& positions = json_result["positions"];
        QCOMPARE(positions.size(), std::size_t(2));
        QCOMPARE(positions[0]["position"].get<int>(), 0);
        QCOMPARE(positions[1]["position"].get<int>(), 4);
        for (const auto& entry : positions) {
            QCOMPARE(entry["ids"].size(), std::size_t(5));
            const std::vector<double> logits = entry["logits"];
            QVERIFY(std::is_sorted(logits.rbegin(), logits.rend()));
        }
        QCOMPARE(json_result["greedy"].size(), std::size_t(3));
        QVERIFY(json_result["greedy"][0] == positions[1]["ids"][0]);
        // Without positions: the last. Without --greedy: none.
        const json last = cli_.run({"eval", "--tokens", cli_.write("t.json", R"({"tokens": [8190, 430, 198, 332, 274]})"), "--top", "5", "--json"}).json();
        QCOMPARE(last["positions"].size(), std::size_t(1));
        QVERIFY(last["positions"][0]["ids"] == positions[1]["ids"]);
        QVERIFY(!last.contains("greedy"));
        QVERIFY(cli_.run({"eval", "--tokens", tokens, "--top", "1"}).out.startsWith("position 0\n"));
    }

    void eval_reference() {
        const QString path = path_argument("models/reference.json");
        if (path.isEmpty()) QSKIP(missing_shared("models/reference.json"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const json reference = json::parse(file.readAll().toStdString());
        const json& first = reference["logits"][0];  // the engine's own tests have all of them
        json positions = json::array();
        for (const auto& entry : first["positions"]) positions.push_back(entry["pos"]);
        const QString tokens = cli_.write("tokens.json", QByteArray::fromStdString(json{{"tokens", first["tokens"]}, {"positions", positions}}.dump()));
        const json result = cli_.run({"eval", "-m", path_argument("models/guide-f16.gguf"), "--tokens", tokens, "--top", "16", "--json"}).json();
        QCOMPARE(result["positions"].size(), first["positions"].size());
        for (std::size_t i = 0; i < positions.size(); ++i) {
            const std::vector<double> want = first["positions"][i]["top_logits"];
            const std::vector<double> got = result["positions"][i]["logits"];
            QCOMPARE(got.size(), want.size());
            for (std::size_t k = 0; k < got.size(); ++k) QVERIFY2(std::abs(got[k] - want[k]) <= 0.02, std::to_string(got[k] - want[k]).c_str());
        }
    }

    void perplexity() {
        const QByteArray line = "The reserve is the part of VRAM that other programs are to have. ";
        const QString file = cli_.write("text.txt", line.repeated(6));
        const json whole = cli_.run({"perplexity", file, "--json"}).json();
        QCOMPARE(whole["pieces"].get<int>(), 1);
        const int tokens = whole["context"];
        QCOMPARE(whole["tokens"].get<int>(), tokens - 1);  // shorter than a piece: all but the first
        QVERIFY(whole["perplexity"].get<double>() > 1);
        // In pieces of 32, of which 16 to 30 have a successor that is judged.
        const json cut = cli_.run({"perplexity", file, "--ctx", "32", "--json"}).json();
        QCOMPARE(cut["pieces"].get<int>(), tokens / 32);
        QCOMPARE(cut["tokens"].get<int>(), tokens / 32 * 15);
        const auto text = cli_.run({"perplexity", file});
        QCOMPARE(text.code, 0);
        QVERIFY2(text.out.endsWith(QByteArray(" over ") + QByteArray::number(tokens - 1) + " tokens\n"), text.out.constData());
        QCOMPARE(text.error, QByteArray());

        // One token judged: its probability by hand from eval.
        const QString two = cli_.write("two.txt", "Hello world");
        const QString list = cli_.write("tokens.json", R"({"tokens": [1091]})");
        const json logits = cli_.run({"eval", "--tokens", list, "--top", "8192", "--json"}).json()["positions"][0];
        double sum = 0;
        double wanted = 0;
        for (std::size_t i = 0; i < logits["ids"].size(); ++i) {
            sum += std::exp(logits["logits"][i].get<double>());
            if (logits["ids"][i] == 1914) wanted = logits["logits"][i];
        }
        const double got = cli_.run({"perplexity", two, "--json"}).json()["perplexity"];
        QVERIFY2(std::abs(got / (sum / std::exp(wanted)) - 1) < 1e-5, std::to_string(got).c_str());
    }

    void bench() {
        const auto result = cli_.run({"bench", "-p", "16", "-n", "4", "-r", "2", "--json"});
        QCOMPARE(result.code, 0);
        QCOMPARE(result.error, QByteArray());
        const json runs = result.json()["runs"];
        QCOMPARE(runs.size(), std::size_t(1));
        QVERIFY(runs[0]["reserve_mib"].is_null());
        QCOMPARE(runs[0]["vram_used_mib"].get<int>(), 0);
        QVERIFY(runs[0]["prompt_tps"].get<double>() > 0);
        QVERIFY(runs[0]["decode_tps"].get<double>() > 0);
        QVERIFY(cli_.run({"bench", "-p", "16", "-n", "4", "-r", "1", "--reserve-mib", "0,1024"}).out.contains("decode"));
    }

#ifdef Q_OS_UNIX
private:
    // Starts the program, waits until it has written something.
    void start(QProcess& process, const QStringList& arguments, const QByteArray& input,
               QProcess::ProcessChannel channel = QProcess::StandardOutput) {
        cli_.prepare(process, arguments);
        process.setReadChannel(channel);
        process.start();
        process.write(input);
        QVERIFY(process.waitForReadyRead(60'000));
    }
    // 2,000 tokens that no end token ends: long enough to be interrupted.
    const QStringList kEndless{"--temp", "3", "--top-k", "0", "--top-p", "1", "--seed", "5"};

private slots:
    void interrupt_stops_the_answer_only() {
        QProcess process;
        start(process, QStringList{"chat"} + kEndless, "Tell me all about everything.\n");
        ::kill(static_cast<pid_t>(process.processId()), SIGINT);
        // It is still there, and answers.
        process.write("/nothing\n");
        QByteArray told;
        QElapsedTimer timer;
        timer.start();
        while (!told.contains("no command") && timer.elapsed() < 60'000) {
            process.waitForReadyRead(100);
            told += process.readAllStandardError();
        }
        QVERIFY2(told.contains("no command"), told.constData());
        QCOMPARE(process.state(), QProcess::Running);
        process.readAllStandardOutput();
        // Where nothing is being answered it ends the program, as it should.
        ::kill(static_cast<pid_t>(process.processId()), SIGINT);
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 0);
    }

    void interrupt_ends_a_single_answer() {
        QProcess process;
        start(process, QStringList{"chat", "-p", "Tell me all about everything."} + kEndless, {});
        ::kill(static_cast<pid_t>(process.processId()), SIGINT);
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 0);
        QVERIFY(process.readAllStandardOutput().endsWith('\n'));
    }

    void interrupt_ends_a_measurement() {
        QProcess process;
        start(process, {"bench", "-p", "16", "-n", "4", "-r", "1000000", "-v"}, {}, QProcess::StandardError);
        ::kill(static_cast<pid_t>(process.processId()), SIGINT);
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 1);
        QVERIFY(process.readAllStandardError().contains("cancelled"));
    }
#endif
};

QTEST_GUILESS_MAIN(TestCliAnswers)
#include "tst_cli_answers.moc"
