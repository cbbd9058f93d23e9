#include "core/vmm/verdict_store.h"

#include <tuple>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/system.h"

namespace headroom::vmm {
namespace {

using nlohmann::json;

constexpr int self_test_version = 1;         // goes up whenever the self-test sees more than before
constexpr std::size_t most_verdicts = 64;    // cards and drivers come and go

auto key(const Verdict& v) { return std::tie(v.uuid, v.driver, v.runtime, v.os); }

}  // namespace

std::filesystem::path VerdictStore::default_file() { return user_data_folder() / "verdicts.json"; }

std::vector<Verdict> VerdictStore::load() const {
    std::error_code code;
    if (!std::filesystem::exists(file_, code)) return {};
    const auto text = read_file(file_, 16 * MiB);
    const json file = text ? json::parse(*text, nullptr, false) : json();
    if (!file.is_object() || !file.contains("verdicts") || !file["verdicts"].is_array()) {
        spdlog::warn("{}: no verdicts can be read from it, so devices are tested again", to_utf8(file_));
        return {};
    }
    if (file.value("self_test", json(0)) != self_test_version) return {};
    std::vector<Verdict> verdicts;
    for (const auto& entry : file["verdicts"]) {
        if (auto verdict = verdict_from_json(entry)) verdicts.push_back(std::move(*verdict));
    }
    return verdicts;
}

std::optional<Verdict> VerdictStore::find(const gpu::DeviceInfo& device) const {
    const std::string os = os_name();
    for (auto& verdict : load()) {
        if (key(verdict) == std::tie(device.uuid, device.driver, device.runtime, os)) return std::move(verdict);
    }
    return std::nullopt;
}

Result<> VerdictStore::keep(const Verdict& verdict) const {
    auto verdicts = load();
    std::erase_if(verdicts, [&](const Verdict& old) { return key(old) == key(verdict); });
    if (verdicts.size() >= most_verdicts) verdicts.erase(verdicts.begin());
    verdicts.push_back(verdict);
    json list = json::array();
    for (const auto& entry : verdicts) list.push_back(to_json(entry));
    const json file = {{"self_test", self_test_version}, {"verdicts", std::move(list)}};
    return write_file(file_, file.dump(1, ' ', false, json::error_handler_t::replace));
}

}  // namespace headroom::vmm
