// GET and POST /v1/vram: a thin layer over engine::Vram.

#include <algorithm>

#include "core/base/bytes.h"
#include "core/base/quote.h"
#include "core/engine/machine_vram.h"
#include "core/server/call.h"

namespace headroom::server {
namespace {

constexpr std::int64_t kMostMib = std::int64_t{1} << 40;

Json mib(std::uint64_t bytes) { return bytes / MiB; }
Json mib(const std::optional<std::uint64_t>& bytes) { return bytes ? Json(*bytes / MiB) : Json(); }

Json report_json(const engine::VramReport& report) {
    return {{"device", report.device},
            {"number", report.number},
            {"cause", engine::to_string(report.cause)},
            {"reserve_mib", mib(report.reserve_bytes)},
            {"cap_mib", mib(report.wish.cap_bytes)},
            {"met", report.met},
            {"limited_by", report.limited_by.empty() ? Json() : Json(report.limited_by)},
            {"free_before_mib", mib(report.free_before)},
            {"free_after_mib", mib(report.free_after)},
            {"own_before_mib", mib(report.own_before)},
            {"own_after_mib", mib(report.own_after)},
            {"total_ms", report.total_ms},
            {"waiting_ms", report.waiting_ms},
            {"moving_ms", report.moving_ms},
            {"releasing_ms", report.releasing_ms},
            {"blocks_resident", report.blocks_resident},
            {"blocks_total", report.blocks_total},
            {"block_name", report.block_name},
            {"parked", report.parked},
            {"text", engine::describe(report)}};
}

// in_use: the loaded model lies on it.
Json device_json(const engine::VramDevice& device, bool in_use) {
    return {{"id", device.id},
            {"name", device.name},
            {"uuid", device.uuid},
            {"verdict", device.verdict},
            {"reason", device.reason.empty() ? Json() : Json(device.reason)},
            {"in_use", in_use},
            {"elastic", device.elastic},
            {"total_mib", mib(device.total_bytes)},
            {"free_mib", mib(device.free_bytes)},
            {"reserve_mib", mib(device.reserve_bytes)},
            {"default_reserve_mib", mib(device.default_reserve_bytes)},
            {"reserve_is_default", !device.wish.reserve_bytes.has_value()},
            {"cap_mib", mib(device.wish.cap_bytes)},
            {"owners",
             {{"weights_mib", mib(device.weights_bytes)},
              {"kv_mib", mib(device.kv_bytes)},
              {"scratch_mib", mib(device.scratch_bytes)},
              {"others_mib", mib(device.others_bytes())}}},
            {"full_mib", mib(device.full_bytes)},
            {"blocks_resident", device.blocks_resident},
            {"blocks_total", device.blocks_total},
            {"block_name", device.block_name},
            {"hit_rate", device.hit_rate},
            {"parked", device.parked},
            {"growing", device.growing},
            {"last_report", device.last_report ? report_json(*device.last_report) : Json()}};
}

// Why the model is on no device.
std::string no_devices(const engine::ModelHostStatus& status) {
    if (!status.model) return "No model is loaded";
    return fmt::format("The model {} runs on the processor: it holds no VRAM", quote(status.name));
}

std::vector<engine::VramDevice> devices_of(const engine::ModelHostStatus& status) {
    const auto vram = status.model ? status.model->vram() : nullptr;
    return vram ? vram->devices() : std::vector<engine::VramDevice>();
}

// Those of the machine that are not among `used`.
std::vector<engine::VramDevice> other_devices(Backend& backend, const std::vector<engine::VramDevice>& used) {
    const std::scoped_lock lock(backend.finding_devices);
    auto all = engine::machine_vram(backend.drivers, backend.data_folder);
    std::erase_if(all, [&](const engine::VramDevice& device) { return std::ranges::find(used, device.id, &engine::VramDevice::id) != used.end(); });
    return all;
}

ApiError conflict(std::string message) { return {.status = 409, .message = std::move(message), .code = "not_elastic", .param = "reserve_mib"}; }

}  // namespace

ApiResult<HttpResponse> read_vram(Call& call) {
    const engine::ModelHostStatus status = call.backend.host.status();
    const auto used = devices_of(status);
    Json devices = Json::array();
    for (const engine::VramDevice& device : used) devices.push_back(device_json(device, true));
    for (const engine::VramDevice& device : other_devices(call.backend, used)) devices.push_back(device_json(device, false));
    Json json{{"model", status.model ? Json(status.name) : Json()}};
    if (used.empty()) {
        json["verdict"] = "off";
        json["reason"] = no_devices(status);
    }
    json["devices"] = std::move(devices);
    return json_response(json);
}

ApiResult<HttpResponse> change_vram(Call& call) {
    Fields fields(call.body);
    const auto reserve = fields.integer("reserve_mib", 0, kMostMib);
    const auto cap = fields.integer("cap_mib", 0, kMostMib);
    std::string id = fields.string("device").value_or("");
    const bool has_reserve = call.body.contains("reserve_mib");
    const bool has_cap = call.body.contains("cap_mib");
    if (!has_reserve && !has_cap) fields.fail("reserve_mib", "Neither reserve_mib nor cap_mib is there: nothing would change");
    if (fields.error()) return std::unexpected(*fields.error());

    const engine::ModelHostStatus status = call.backend.host.status();
    const auto devices = devices_of(status);
    if (devices.empty()) return std::unexpected(conflict(no_devices(status)));
    const auto named = [&](const engine::VramDevice& device) { return device.id == id; };
    if (!id.empty() && std::ranges::none_of(devices, named) && std::ranges::any_of(other_devices(call.backend, devices), named)) {
        return std::unexpected(conflict(fmt::format("The model {} is not on {}: reserve and cap act where it is, which is {}", quote(status.name), quote(id),
                                                    quote(devices.front().id))));
    }
    if (id.empty()) {
        if (devices.size() > 1) return refuse("device", "The model is on {} devices: name one, such as {}", devices.size(), quote(devices.front().id));
        id = devices.front().id;
    }
    engine::VramWish wish;
    for (const engine::VramDevice& device : devices) {
        if (device.id == id) wish = device.wish;
    }
    if (has_reserve) wish.reserve_bytes = reserve ? std::optional(static_cast<std::uint64_t>(*reserve) * MiB) : std::nullopt;
    if (has_cap) wish.cap_bytes = cap ? std::optional(static_cast<std::uint64_t>(*cap) * MiB) : std::nullopt;
    const auto report = status.model->vram()->set_and_wait(id, wish);
    if (!report) {
        if (report.error().kind == ErrorKind::unsupported) return std::unexpected(conflict(report.error().message));
        ApiError error = to_api_error(report.error());
        if (error.status == 404) error.code = "device_not_found", error.param = "device";
        return std::unexpected(std::move(error));
    }
    return json_response(report_json(*report));
}

}  // namespace headroom::server
