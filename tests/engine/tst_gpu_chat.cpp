// The whole engine on a simulated GPU: the built-in model answers as on the processor, within the memory it was given.

#include <QTest>

#include "core/base/bytes.h"
#include "core/engine/engine.h"
#include "tests/model/model_runner.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::test;

Q_DECLARE_METATYPE(engine::KvType)

class TstGpuChat : public QObject {
    Q_OBJECT

private slots:
    void init() { one_card({}); }

    void answers_as_the_processor_data() {
        QTest::addColumn<engine::KvType>("kv_type");
        QTest::newRow("f16") << engine::KvType::f16;
        QTest::newRow("q8_0") << engine::KvType::q8_0;
    }
    void answers_as_the_processor() {
        QFETCH(const engine::KvType, kv_type);
        const auto on_gpu = load("cuda:0", {}, kv_type), on_cpu = load("cpu", {}, kv_type);
        QVERIFY(on_gpu->info().kv_type == kv_type);
        QCOMPARE(on_gpu->info().devices.size(), std::size_t{1});
        const engine::DeviceUse& use = on_gpu->info().devices.front();
        QCOMPARE(use.id, std::string("cuda:0"));
        QCOMPARE(use.layers, on_gpu->info().layers);
        QCOMPARE(use.experts, on_gpu->info().experts_total);
        QVERIFY(on_cpu->info().devices.empty());
        for (const char* question : {"What is the reserve?", "Hello!", "Which GPUs can be used?"}) {
            const std::string right = answer(*on_cpu, on_cpu, question, 0);
            QVERIFY(!right.empty());
            QCOMPARE(answer(*on_gpu, on_gpu, question, 0), right);
            // Drawn with a seed: the likeliest tokens come back to the host.
            QCOMPARE(answer(*on_gpu, on_gpu, question, 0.7f), answer(*on_cpu, on_cpu, question, 0.7f));
        }
    }

    void hip_answers_too() {
        const auto on_gpu = load("hip:0"), on_cpu = load("cpu");
        QCOMPARE(on_gpu->info().devices.front().id, std::string("hip:0"));
        QCOMPARE(answer(*on_gpu, on_gpu, "What is the reserve?", 0), answer(*on_cpu, on_cpu, "What is the reserve?", 0));
    }

    // Less and less VRAM: fewer experts, then fewer layers, then none; never another word, and never more than the card has.
    void answers_with_less_vram() {
        const auto on_cpu = load("cpu");
        const std::string right = answer(*on_cpu, on_cpu, "What is the reserve?", 0);
        bool some_experts = false, some_layers = false, none = false;
        for (int mib = 400; mib > 100; mib -= 6) {
            one_card({{"total_mib", mib}});
            const auto model = load("cuda:0", 0);
            QCOMPARE(answer(*model, model, "What is the reserve?", 0), right);
            const engine::ModelInfo& info = model->info();
            if (info.devices.empty()) {
                none = true;
                QCOMPARE(info.warnings.size(), std::size_t{1});
                QVERIFY2(info.warnings.front().starts_with("The model runs on the processor:"), info.warnings.front().c_str());
                break;
            }
            QVERIFY(info.devices.front().bytes <= static_cast<std::uint64_t>(mib) * MiB);
            some_experts = some_experts || (info.devices.front().layers == info.layers && info.devices.front().experts < info.experts_total);
            some_layers = some_layers || info.devices.front().layers < info.layers;
        }
        QVERIFY(some_experts);
        QVERIFY(some_layers);
        QVERIFY(none);
    }

    // The reserve is kept for others.
    void keeps_the_reserve() {
        one_card({{"total_mib", 1024}});
        const auto model = load("cuda:0", 800);
        QVERIFY(!model->info().devices.empty());
        QVERIFY(model->info().devices.front().bytes <= 224 * MiB);
        QVERIFY(load("cuda:0", 1020)->info().devices.empty());
    }

    // A model too large for either of two cards lies on both.
    void two_cards_where_one_is_too_small() {
        const auto on_cpu = load("cpu");
        const std::string right = answer(*on_cpu, on_cpu, "What is the reserve?", 0);
        for (int mib = 240; mib > 100; mib -= 10) {
            one_card({{"total_mib", mib}});
            const engine::ModelInfo alone = load("cuda:0", 0)->info();
            QVERIFY(!alone.devices.empty());
            if (alone.devices.front().experts == alone.experts_total) continue;
            simulator_.reset({{"cuda", nlohmann::json::array({{{"total_mib", mib}}, {{"total_mib", mib}}})}});
            const auto model = load("auto", 0);
            QCOMPARE(model->info().devices.size(), std::size_t{2});
            QCOMPARE(model->info().devices[1].id, std::string("cuda:1"));
            QCOMPARE(model->info().devices[0].experts + model->info().devices[1].experts, model->info().experts_total);
            QCOMPARE(answer(*model, model, "What is the reserve?", 0), right);
            return;
        }
        QFAIL("one card always held everything");
    }

    void names_the_devices_that_are_there() {
        const auto model = engine::Model::load(options("cuda:7", {}));
        QVERIFY(!model);
        QCOMPARE(model.error().kind, ErrorKind::not_found);
        QVERIFY2(model.error().message.find("cuda:0") != std::string::npos, model.error().message.c_str());
        const auto odd = engine::Model::load(options("tpu", {}));
        QVERIFY(!odd && odd.error().kind == ErrorKind::invalid_argument);
        // Without any GPU "auto" is no error and no warning.
        engine::LoadOptions without = options("auto", {});
        without.drivers = simulator_.nothing();
        const auto plain = must(engine::Model::load(without));
        QVERIFY(plain->info().devices.empty() && plain->info().warnings.empty());
    }

    void cleanup() { QVERIFY2(leaks(simulator_.counters()).empty(), leaks(simulator_.counters()).c_str()); }

private:
    void one_card(nlohmann::json card) {
        if (card.is_null()) card = nlohmann::json::object();
        simulator_.reset({{"cuda", nlohmann::json::array({card})}, {"hip", nlohmann::json::array({card})}});
    }
    engine::LoadOptions options(const std::string& device, std::optional<std::uint64_t> reserve_mib) const {
        engine::LoadOptions options;
        options.path = must(engine::find_model("builtin", {}));
        options.threads = 2;
        options.device = device;
        if (reserve_mib) options.reserve_bytes = *reserve_mib * MiB;
        options.drivers = simulator_.path();
        return options;
    }
    std::shared_ptr<engine::Model> load(const std::string& device, std::optional<std::uint64_t> reserve_mib = {},
                                        engine::KvType kv_type = engine::KvType::f16) const {
        engine::LoadOptions wanted = options(device, reserve_mib);
        wanted.kv_type = kv_type;
        return must(engine::Model::load(wanted));
    }
    static std::string answer(const engine::Model& model, const std::shared_ptr<engine::Model>& shared, const char* question, float temperature) {
        engine::GenerateRequest request;
        request.prompt = must(model.chat_prompt({{"messages", {{{"role", "user"}, {"content", question}}}}}));
        request.sampling.temperature = temperature;
        request.sampling.seed = 7;
        request.max_tokens = 24;
        return must(must(engine::Session::create(shared))->generate(request)).text;
    }

    SimGpu simulator_;
};

QTEST_GUILESS_MAIN(TstGpuChat)
#include "tst_gpu_chat.moc"
