// VRAM of a running server and of the window's, on simulated cards: read, set and reset over HTTP and with headroom-cli vram.

#include <QTemporaryDir>

#include "core/base/bytes.h"
#include "core/base/system.h"
#include "core/vmm/verdict_store.h"
#include "tests/cli/cli_process.h"
#include "tests/server/test_server.h"
#include "tests/simgpu/fixture.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr std::uint64_t kCard = 8 * GiB;

// The built-in model on the first of two simulated cards; the second was not tested.
class CardServer {
public:
    explicit CardServer(SimGpu& simulator) : simulator_(simulator) {
        const nlohmann::json card{{"total_mib", kCard / MiB}, {"granularity_min", 65536}, {"granularity_rec", 65536}};
        simulator.reset({{"cuda", nlohmann::json::array({card, card})}});
        keep_verdict();
        server::ServerOptions options;
        options.port = 0;
        options.models.first_name = "builtin";
        options.models.first_path = must(engine::find_model("builtin", {}));
        engine::LoadOptions& load = options.models.load;
        load.threads = 2;
        load.device = "cuda:0";
        load.data_folder = from_utf8(folder_.path().toStdString());
        load.drivers = simulator.path();
        engine::LoadOptions first = load;
        first.path = options.models.first_path;
        model_ = must(engine::Model::load(first));
        options.models.first_model = model_;
        server_ = must(server::Server::start(std::move(options)));
    }
    [[nodiscard]] int port() const { return server_->port(); }
    [[nodiscard]] QString url() const { return QString::fromStdString(server_->address()); }
    [[nodiscard]] Json device(std::size_t i) const { return get(port(), "/v1/vram").json()["devices"][i]; }
    void unload() {
        model_.reset();
        QCOMPARE(ask(port(), "POST", "/v1/unload").status, 200);
    }

private:
    void keep_verdict() const {
        const auto driver = must(gpu::Driver::load(gpu::Backend::cuda, simulator_.path()));
        const gpu::DeviceInfo& device = driver->devices().front();
        vmm::Verdict verdict;
        verdict.kind = vmm::VerdictKind::on;
        verdict.granularity_min = verdict.granularity_recommended = 64 * KiB;
        verdict.segment_bytes = 256 * KiB;
        verdict.largest_reservation = kCard;
        verdict.uuid = device.uuid;
        verdict.driver = device.driver;
        verdict.runtime = device.runtime;
        verdict.os = os_name();
        QVERIFY(vmm::VerdictStore(from_utf8(folder_.path().toStdString()) / "verdicts.json").keep(verdict).has_value());
    }

    SimGpu& simulator_;
    QTemporaryDir folder_;
    std::shared_ptr<engine::Model> model_;
    std::unique_ptr<server::Server> server_;
};

Json question() {
    return {{"messages", Json::array({{{"role", "user"}, {"content", "What is the reserve?"}}})}, {"temperature", 0}, {"max_tokens", 30}};
}

std::string words(int port) { return post(port, "/v1/chat/completions", question()).json()["choices"][0]["message"]["content"]; }

}  // namespace

class TstServerVram : public QObject {
    Q_OBJECT

    SimGpu simulator_;
    Cli cli_;

private slots:
    void all_devices_of_the_machine_are_listed() {
        CardServer server(simulator_);
        const Json vram = get(server.port(), "/v1/vram").json();
        QCOMPARE(vram["model"], Json("builtin"));
        QVERIFY(!vram.contains("verdict"));
        QCOMPARE(vram["devices"].size(), 2u);
        const Json used = vram["devices"][0], other = vram["devices"][1];
        QCOMPARE(used["id"], Json("cuda:0"));
        QCOMPARE(used["in_use"], Json(true));
        QCOMPARE(used["verdict"], Json("on"));
        QCOMPARE(used["elastic"], Json(true));
        QVERIFY(used["owners"]["weights_mib"].get<int>() > 0);
        QCOMPARE(other["id"], Json("cuda:1"));
        QCOMPARE(other["in_use"], Json(false));
        QCOMPARE(other["verdict"], Json("off"));
        QVERIFY(other["reason"].get<std::string>().find("not tested") != std::string::npos);
        QCOMPARE(other["elastic"], Json(false));
        QCOMPARE(other["total_mib"], Json(kCard / MiB));
        QCOMPARE(other["owners"]["weights_mib"], Json(0));
        QCOMPARE(other["reserve_mib"], Json(1024));
        // Nothing is set where the model is not.
        const Reply refused = post(server.port(), "/v1/vram", {{"device", "cuda:1"}, {"reserve_mib", 2000}});
        QCOMPARE(refused.status, 409);
        QVERIFY(refused.error("message").find("cuda:0") != std::string::npos);
        QCOMPARE(post(server.port(), "/v1/vram", {{"device", "cuda:7"}, {"reserve_mib", 2000}}).status, 404);
        // Without a model the machine's are there all the same.
        server.unload();
        const Json empty = get(server.port(), "/v1/vram").json();
        QCOMPARE(empty["verdict"], Json("off"));
        QCOMPARE(empty["devices"].size(), 2u);
        QCOMPARE(empty["devices"][0]["verdict"], Json("on"));
        QCOMPARE(empty["devices"][0]["in_use"], Json(false));
        // The model is gone, though the server was given it; the driver's own context may still be there.
        QVERIFY2(empty["devices"][0]["free_mib"].get<std::uint64_t>() >= kCard / MiB - 64, empty.dump().c_str());
    }

    void reserve_and_cap_are_set_and_reset() {
        CardServer server(simulator_);
        const std::string right = words(server.port());
        const int full = server.device(0)["full_mib"];
        // A cap below what the model holds: it gives back, at once, and says the same words.
        const Json capped = post(server.port(), "/v1/vram", {{"cap_mib", full - 6}}).json();
        QVERIFY2(capped["met"] == Json(true), capped.dump().c_str());
        QCOMPARE(capped["cause"], Json("request"));
        QCOMPARE(capped["cap_mib"], Json(full - 6));
        QVERIFY(capped["own_after_mib"].get<int>() <= full - 6);
        QVERIFY(capped["blocks_resident"] < capped["blocks_total"]);
        QVERIFY(!capped["text"].get<std::string>().empty());
        QCOMPARE(server.device(0)["cap_mib"], Json(full - 6));
        QCOMPARE(server.device(0)["last_report"], capped);
        QCOMPARE(words(server.port()), right);
        // The whole card: parked.
        const Json parked = post(server.port(), "/v1/vram", {{"device", "cuda:0"}, {"reserve_mib", kCard / MiB}}).json();
        QVERIFY2(parked["met"] == Json(true) && parked["parked"] == Json(true), parked.dump().c_str());
        QCOMPARE(parked["cap_mib"], Json(full - 6));  // the other wish stays
        QCOMPARE(words(server.port()), right);
        // Null: the default again, both.
        const Json back = post(server.port(), "/v1/vram", {{"reserve_mib", nullptr}, {"cap_mib", nullptr}}).json();
        QVERIFY2(back["met"] == Json(true), back.dump().c_str());
        QCOMPARE(back["blocks_resident"], back["blocks_total"]);
        QCOMPARE(server.device(0)["reserve_is_default"], Json(true));
        QCOMPARE(server.device(0)["cap_mib"], Json());
        QCOMPARE(words(server.port()), right);
    }

    // Other programs hold more than the reserve leaves: the report says so.
    void a_missed_target_is_told() {
        CardServer server(simulator_);
        simulator_.set_other(gpu::Backend::cuda, 0, 5 * GiB);
        const Json missed = post(server.port(), "/v1/vram", {{"reserve_mib", 4096}}).json();
        QCOMPARE(missed["met"], Json(false));
        QVERIFY2(missed["limited_by"].get<std::string>().find("other programs") != std::string::npos, missed.dump().c_str());
        QVERIFY(missed["free_after_mib"].get<int>() < 4096);
        QCOMPARE(missed["own_after_mib"], Json(0));
        const auto told = cli_.run({"vram", "--url", server.url(), "--reserve-mib", "4097"});
        QCOMPARE(told.code, 0);
        QVERIFY2(told.out.contains("other programs"), told.out.constData());
        simulator_.set_other(gpu::Backend::cuda, 0, 0);
        QCOMPARE(post(server.port(), "/v1/vram", {{"reserve_mib", nullptr}}).json()["met"], Json(true));
    }

    void the_command_reads_sets_and_resets() {
        CardServer server(simulator_);
        const auto text = cli_.run({"vram", "--url", server.url()});
        QCOMPARE(text.code, 0);
        QVERIFY2(text.out.contains("cuda:0") && text.out.contains("cuda:1") && text.out.contains("not tested"), text.out.constData());
        const auto one = cli_.run({"vram", "--json", "--url", server.url(), "--device", "cuda:0"});
        QCOMPARE(one.json()["devices"].size(), 1u);
        QCOMPARE(one.json()["devices"][0]["verdict"], Json("on"));
        const auto set = cli_.run({"vram", "--json", "--url", server.url(), "--device", "cuda:0", "--reserve-mib", QString::number(kCard / MiB), "--cap-mib", "3000"});
        QCOMPARE(set.code, 0);
        QCOMPARE(set.json()["met"], Json(true));
        QCOMPARE(set.json()["parked"], Json(true));
        QCOMPARE(server.device(0)["reserve_mib"], Json(kCard / MiB));
        QCOMPARE(server.device(0)["cap_mib"], Json(3000));
        const auto reset = cli_.run({"vram", "--json", "--url", server.url(), "--reserve", "default", "--cap", "default"});
        QCOMPARE(reset.code, 0);
        QCOMPARE(reset.json()["met"], Json(true));
        QCOMPARE(reset.json()["blocks_resident"], reset.json()["blocks_total"]);
        QCOMPARE(server.device(0)["reserve_is_default"], Json(true));
        QCOMPARE(cli_.run({"vram", "--url", server.url(), "--device", "cuda:1", "--reserve-mib", "5"}).code, 1);
        QCOMPARE(cli_.run({"vram", "--url", server.url(), "--device", "cuda:9"}).code, 1);
    }
};

QTEST_GUILESS_MAIN(TstServerVram)
#include "tst_server_vram.moc"
