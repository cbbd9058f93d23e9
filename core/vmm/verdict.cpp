#include "core/vmm/verdict.h"

#include <array>
#include <optional>

#include <nlohmann/json.hpp>

namespace headroom::vmm {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kinds = {"on", "fixed", "off"};
constexpr std::array<std::string_view, 4> outcomes = {"passed", "noted", "failed", "skipped"};
constexpr std::array<std::string_view, 2> styles = {"per mapping", "from base"};

template <class Enum, std::size_t n>
std::optional<Enum> find(const std::array<std::string_view, n>& names, const json& value) {
    if (!value.is_string()) return std::nullopt;
    for (std::size_t i = 0; i < n; ++i) {
        if (value.get_ref<const std::string&>() == names[i]) return static_cast<Enum>(i);
    }
    return std::nullopt;
}

// Reads a field of the right type, or says which one is wrong.
class Reader {
public:
    explicit Reader(const json& object) : object_(object) {}
    void read(const char* name, std::string& to) {
        if (const json* value = field(name, &json::is_string)) to = value->get<std::string>();
    }
    void read(const char* name, std::uint64_t& to) {
        if (const json* value = field(name, &json::is_number_unsigned)) to = value->get<std::uint64_t>();
    }
    void read(const char* name, double& to) {
        if (const json* value = field(name, &json::is_number)) to = value->get<double>();
    }
    void read(const char* name, bool& to) {
        if (const json* value = field(name, &json::is_boolean)) to = value->get<bool>();
    }
    template <class Enum, std::size_t n>
    void read(const char* name, const std::array<std::string_view, n>& names, Enum& to) {
        const json* value = field(name, &json::is_string);
        if (!value) return;
        if (const auto found = find<Enum>(names, *value)) {
            to = *found;
        } else if (wrong_.empty()) {
            wrong_ = name;
        }
    }
    const json* field(const char* name, bool (json::*is_type)() const noexcept) {
        const auto found = object_.find(name);
        if (found != object_.end() && ((*found).*is_type)()) return &*found;
        if (wrong_.empty()) wrong_ = name;
        return nullptr;
    }
    [[nodiscard]] Result<> result() const {
        if (wrong_.empty()) return {};
        return fail(ErrorKind::invalid_file, "the field \"{}\" is missing or of another type", wrong_);
    }

private:
    const json& object_;
    std::string wrong_;
};

}  // namespace

std::string_view to_string(VerdictKind kind) noexcept { return kinds[static_cast<std::size_t>(kind)]; }
std::string_view to_string(Observation::Outcome outcome) noexcept { return outcomes[static_cast<std::size_t>(outcome)]; }

json to_json(const Observation& o) {
    return {{"step", o.step}, {"outcome", to_string(o.outcome)}, {"seen", o.seen}, {"seconds", o.seconds}};
}

json to_json(const Verdict& v) {
    json observations = json::array();
    for (const auto& o : v.observations) observations.push_back(to_json(o));
    return {{"verdict", to_string(v.kind)},
            {"reason", v.reason},
            {"access", styles[static_cast<std::size_t>(v.access)]},
            {"host_access", v.host_access},
            {"clear_fresh", v.clear_fresh},
            {"granularity_min", v.granularity_min},
            {"granularity_recommended", v.granularity_recommended},
            {"segment_bytes", v.segment_bytes},
            {"largest_reservation", v.largest_reservation},
            {"open_files_needed", v.open_files_needed},
            {"kernel_test", v.kernel_test},
            {"observations", std::move(observations)},
            {"uuid", v.uuid},
            {"driver", v.driver},
            {"runtime", v.runtime},
            {"os", v.os},
            {"tested_at", v.tested_at},
            {"seconds", v.seconds},
            {"keep", v.keep}};
}

Result<Observation> observation_from_json(const json& from) {
    if (!from.is_object()) return fail(ErrorKind::invalid_file, "an observation is not an object");
    Observation o;
    Reader reader(from);
    reader.read("step", o.step);
    reader.read("outcome", outcomes, o.outcome);
    reader.read("seen", o.seen);
    reader.read("seconds", o.seconds);
    HR_CHECK(reader.result());
    return o;
}

Result<Verdict> verdict_from_json(const json& from) {
    if (!from.is_object()) return fail(ErrorKind::invalid_file, "a verdict is not an object");
    Verdict v;
    Reader reader(from);
    reader.read("verdict", kinds, v.kind);
    reader.read("reason", v.reason);
    reader.read("access", styles, v.access);
    reader.read("host_access", v.host_access);
    reader.read("clear_fresh", v.clear_fresh);
    reader.read("granularity_min", v.granularity_min);
    reader.read("granularity_recommended", v.granularity_recommended);
    reader.read("segment_bytes", v.segment_bytes);
    reader.read("largest_reservation", v.largest_reservation);
    reader.read("open_files_needed", v.open_files_needed);
    reader.read("kernel_test", v.kernel_test);
    reader.read("uuid", v.uuid);
    reader.read("driver", v.driver);
    reader.read("runtime", v.runtime);
    reader.read("os", v.os);
    reader.read("tested_at", v.tested_at);
    reader.read("seconds", v.seconds);
    reader.read("keep", v.keep);
    if (const json* list = reader.field("observations", &json::is_array)) {
        for (const auto& entry : *list) {
            HR_TRY(auto observation, observation_from_json(entry));
            v.observations.push_back(std::move(observation));
        }
    }
    HR_CHECK(reader.result());
    return v;
}

}  // namespace headroom::vmm
