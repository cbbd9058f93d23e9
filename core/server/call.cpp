#include "core/server/call.h"

#include <fmt/chrono.h>

#include <random>

namespace headroom::server {

ApiResult<engine::ModelInUse> Call::use_model() {
    Fields fields(body);
    const std::string name = fields.string("model").value_or("");
    if (fields.error()) return std::unexpected(*fields.error());
    const auto nobody = [this] { return gone(); };
    auto use = backend.host.acquire(name, nobody);
    if (!use) return std::unexpected(load_error(use.error()));
    logged->set_model(use->name());
    return std::move(*use);
}

std::string new_id(std::string_view prefix) {
    std::random_device random;
    return fmt::format("{}{:08x}{:08x}{:08x}", prefix, random(), random(), random());
}

std::int64_t unix_seconds(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string iso_time(std::chrono::system_clock::time_point time) {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(milliseconds / 1000)), milliseconds % 1000);
}

}  // namespace headroom::server
