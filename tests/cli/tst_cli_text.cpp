#include <QFile>
#include <QTest>

#include "tests/cli/cli_process.h"
#include "tests/support/shared_data.h"

using namespace headroom::test;
using json = nlohmann::ordered_json;  // templates show objects in the order of their keys

namespace {

json read_json(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? json::parse(file.readAll().toStdString()) : json();
}

}  // namespace

// tokenize, detokenize, template, inspect.
class TestCliText : public QObject {
    Q_OBJECT

private:
    Cli cli_;

private slots:
    void tokenize() {
        const auto plain = cli_.run({"tokenize", "What is the reserve?"});
        QCOMPARE(plain.code, 0);
        QCOMPARE(plain.out, QByteArray("332 274 263 382 30\n"));
        QCOMPARE(plain.error, QByteArray());
        QCOMPARE(cli_.run({"tokenize", "-m", "builtin", "--json", "What is the reserve?"}).out, QByteArray("{\"ids\":[332,274,263,382,30]}\n"));
        QCOMPARE(cli_.run({"tokenize", "--json", "--special", "<|im_end|>"}).out, QByteArray("{\"ids\":[8191]}\n"));
        QVERIFY(cli_.run({"tokenize", "--json", "<|im_end|>"}).json()["ids"] == json({27, 91, 453, 62, 554, 91, 29}));
        // From a pipe and from a file, byte for byte.
        QCOMPARE(cli_.run({"tokenize"}, "hello\n").out, QByteArray("2847 198\n"));
        QCOMPARE(cli_.run({"tokenize", "--file", cli_.write(QString::fromUtf8("t\u00e4xt.txt"), "hello\n")}).out, QByteArray("2847 198\n"));
        QVERIFY(cli_.run({"tokenize", "--json", "--file", cli_.write("text.txt", "hello\n")}).json()["ids"] == json({2847, 198}));
        QCOMPARE(cli_.run({"tokenize", ""}).out, QByteArray("\n"));
        QCOMPARE(cli_.run({"tokenize", "--json", ""}).out, QByteArray("{\"ids\":[]}\n"));
        QVERIFY(cli_.run({"tokenize", "--json", QString::fromUtf8("\u00bfQu\u00e9 tal?")}).json()["ids"] == json({126, 123, 1354, 127, 102, 1342, 30}));
    }

    void detokenize() {
        QCOMPARE(cli_.run({"detokenize", "332", "274", "263", "382", "30"}).out, QByteArray("What is the reserve?\n"));
        QCOMPARE(cli_.run({"detokenize", "--json", "8190", "430", "261", "198"}).out, QByteArray("{\"text\":\"<|im_start|>user\\n\"}\n"));
        // Half a character.
        QCOMPARE(cli_.run({"detokenize", "--json", "160", "121"}).json()["text"].get<std::string>(), std::string("\xEF\xBF\xBD"));
    }

    void reference_strings() {
        const QString path = path_argument("models/reference.json");
        if (path.isEmpty()) QSKIP(missing_shared("models/reference.json"));
        const json reference = read_json(path);
        const QString model = path_argument("models/guide-f16.gguf");
#ifdef Q_OS_WIN
        const int step = 5;  // starting a program takes long under wine
#else
        const int step = 1;
#endif
        QCOMPARE(reference["tokenizer"].size(), std::size_t(70));
        int count = 0;
        for (std::size_t i = 0; i < reference["tokenizer"].size(); i += step) {
            const json& entry = reference["tokenizer"][i];
            const QByteArray text = QByteArray::fromStdString(entry["text"]);
            for (const bool special : {true, false}) {
                QStringList arguments{"tokenize", "-m", model, "--json"};
                if (special) arguments << "--special";
                // No argument can hold a NUL byte: such a text goes through the pipe.
                const bool piped = text.contains('\0') || count % 2 == 0;
                if (!piped) arguments << "--" << QString::fromUtf8(text);
                const auto result = cli_.run(arguments, piped ? text : QByteArray());
                QVERIFY2(result.json().is_object() && result.json()["ids"] == entry[special ? "ids" : "ids_plain"], text.constData());
                ++count;
            }
        }
        QCOMPARE(count, 140 / step);
    }

    void reference_chats() {
        const QString path = path_argument("models/reference.json");
        if (path.isEmpty()) QSKIP(missing_shared("models/reference.json"));
        const json reference = read_json(path);
        const QString model = path_argument("models/guide-f16.gguf");
        QCOMPARE(reference["chat"].size(), std::size_t(6));
        for (const auto& entry : reference["chat"]) {
            for (const bool generation : {true, false}) {
                const json context{{"messages", entry["messages"]}, {"add_generation_prompt", generation}};
                const QString file = cli_.write("context.json", QByteArray::fromStdString(context.dump()));
                const std::string want = entry[generation ? "prompt" : "prompt_without_generation"];
                const auto result = cli_.run({"template", "-m", model, "--context", file, "--json"});
                QCOMPARE(result.code, 0);
                QCOMPARE(result.json()["text"].get<std::string>(), want);
                QCOMPARE(cli_.run({"template", "-m", model, "--context", file}).out.toStdString(), want);
            }
        }
    }

    void template_file() {
        const QString context = cli_.write("context.json", R"({"messages": [{"role": "user", "content": "Hi"}], "bos_token": "<s>"})");
        const auto render = [&](const char* source, const QStringList& more = {}) {
            return cli_.run(QStringList{"template", "--file", cli_.write("t.jinja", source), "--context", context} + more);
        };
        QCOMPARE(render("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}").out, QByteArray("<s>user: Hi\n"));
        QCOMPARE(render("{{ strftime_now('%Y-%m-%d %H:%M') }}", {"--now", "2026-07-26T18:30:00"}).out, QByteArray("2026-07-26 18:30"));
        QCOMPARE(render("{{ strftime_now('%d %b %Y') }}", {"--now", "2026-07-26"}).out, QByteArray("26 Jul 2026"));
        for (const char* wrong : {"yesterday", "2026-02-30", "2026-07-26T25:00", "2026-07-26T", "26.07.2026"})
            QCOMPARE(render("x", {"--now", wrong}).code, 2);
        const auto raised = render("{{ raise_exception('No system prompt here') }}", {"--json"});
        QCOMPARE(raised.code, 1);
        QVERIFY(raised.json()["error"].get<std::string>().find("No system prompt here") != std::string::npos);
        QVERIFY(raised.error.contains("No system prompt here"));
        const auto broken = render("{% for m in %}");
        QCOMPARE(broken.code, 1);
        QCOMPARE(broken.out, QByteArray());
        QVERIFY(!broken.error.isEmpty());
    }

    // Real templates: the renders of another implementation.
    void template_renders() {
        const QString path = path_argument("testdata/templates/expected.json");
        if (path.isEmpty()) QSKIP(missing_shared("testdata/templates/expected.json"));
        const json expected = read_json(path);
        int count = 0;
        for (const auto& [name, renders] : expected["expected"].items()) {
            if (count++ % 8 != 0) continue;  // the unit's own test has them all
            for (const char* which : {"user", "tool_call"}) {
                json context = expected["cases"][which];
                context.update(expected["common"]);
                const QString file = cli_.write("context.json", QByteArray::fromStdString(context.dump()));
                const auto result = cli_.run({"template", "--file", path_argument("testdata/templates/" + name), "--context", file, "--json", "--now",
                                              "2026-11-29T12:00:00"});
                const json& want = renders[which];
                QCOMPARE(result.code, want.contains("text") ? 0 : 1);
                if (want.contains("text")) QCOMPARE(result.json()["text"].get<std::string>(), want["text"].get<std::string>());
                else QVERIFY(result.json().contains("error"));
            }
        }
    }

    void inspect() {
        const auto result = cli_.run({"inspect", "builtin", "--json"});
        QCOMPARE(result.code, 0);
        QCOMPARE(result.error, QByteArray());
        const json info = result.json();
        QVERIFY(info.is_object());
        QCOMPARE(info["architecture"].get<std::string>(), std::string("qwen3moe"));
        QCOMPARE(info["name"].get<std::string>(), std::string("Headroom Guide"));
        QCOMPARE(info["parameters"].get<int>(), 25063424);
        QCOMPARE(info["quantization"].get<std::string>(), std::string("Q4_K_M"));
        QCOMPARE(info["context_length"].get<int>(), 2048);
        QCOMPARE(info["file_bytes"].get<qint64>(), QFile(QCoreApplication::applicationDirPath() + "/model/guide-q4_k_m.gguf").size());
        QCOMPARE(info["usable"].get<bool>(), true);
        QVERIFY(info["problem"].is_null());
        QCOMPARE(info["metadata"]["tokenizer.ggml.tokens"].size(), std::size_t(8192));
        QCOMPARE(info["metadata"]["qwen3moe.expert_count"].get<int>(), 16);
        QCOMPARE(info["metadata"]["tokenizer.ggml.add_bos_token"].get<bool>(), false);
        std::uint64_t bytes = 0;
        std::uint64_t elements = 0;
        bool found = false;
        for (const auto& tensor : info["tensors"]) {
            bytes += tensor["bytes"].get<std::uint64_t>();
            std::uint64_t product = 1;
            for (const auto& size : tensor["shape"]) product *= size.get<std::uint64_t>();
            elements += product;
            if (tensor["name"] == "token_embd.weight") {
                found = true;
                QVERIFY(tensor["shape"] == json({256, 8192}));
            }
        }
        QVERIFY(found);
        QCOMPARE(elements, info["parameters"].get<std::uint64_t>());
        QCOMPARE(bytes, info["estimate"]["weights_bytes"].get<std::uint64_t>());
        QVERIFY(info["estimate"]["ram_bytes"].get<std::uint64_t>() > bytes);
        QCOMPARE(info["estimate"]["vram_bytes"].get<int>(), 0);

        const auto text = cli_.run({"inspect", "builtin"});
        QCOMPARE(text.code, 0);
        QVERIFY(text.out.contains("Headroom Guide") && text.out.contains("token_embd.weight"));
        QVERIFY(text.out.contains("qwen3moe.expert_count = 16\n"));
        // Keys and values of 8 bits take less: a code and a share of a half, not a half.
        const json codes = cli_.run({"inspect", "builtin", "--json", "--kv-type", "q8_0"}).json();
        QCOMPARE(codes["estimate"]["kv_type"].get<std::string>(), std::string("q8_0"));
        QCOMPARE(codes["estimate"]["kv_bytes"].get<std::uint64_t>() * 32, info["estimate"]["kv_bytes"].get<std::uint64_t>() * 17);
        QCOMPARE(info["estimate"]["kv_type"].get<std::string>(), std::string("f16"));
        QCOMPARE(cli_.run({"inspect", "builtin", "--kv-type", "q4_0"}).code, 2);
        // A longer context takes more.
        QVERIFY(cli_.run({"inspect", "--json", "--ctx", "1024"}).json()["estimate"]["kv_bytes"].get<std::uint64_t>() <
                info["estimate"]["kv_bytes"].get<std::uint64_t>());
    }

    void inspect_what_cannot_run() {
        const QString path = path_argument("testdata/vocab/ggml-vocab-falcon.gguf");
        if (path.isEmpty()) QSKIP(missing_shared("testdata/vocab"));
        const auto result = cli_.run({"inspect", path, "--json"});
        QCOMPARE(result.code, 0);
        QCOMPARE(result.json()["usable"].get<bool>(), false);
        QVERIFY(result.json()["problem"].get<std::string>().find("falcon") != std::string::npos);
        QVERIFY(cli_.run({"inspect", path}).out.contains("Cannot be run"));
    }
};

QTEST_GUILESS_MAIN(TestCliText)
#include "tst_cli_text.moc"
