#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/quote.h"
#include "core/server/http_client.h"

namespace headroom::cli {
namespace {

struct Options {
    std::string url = "http://127.0.0.1:8080";
    std::string api_key;
    std::string device;
    std::optional<std::uint64_t> reserve_mib;
    std::string reserve;
    std::optional<std::uint64_t> cap_mib;
    std::string cap;
};

// A field that an older or newer server may lack.
std::string text_of(const Json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return "–";
    return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string device_text(const Json& device) {
    const auto line = [](std::string_view name, const std::string& text) { return fmt::format("        {:<9}{}\n", name, text); };
    std::string out = fmt::format("{:<8}{}    {}\n", text_of(device, "id"), text_of(device, "name"), text_of(device, "verdict"));
    if (text_of(device, "reason") != "–") out += line("Reason", text_of(device, "reason"));
    out += line("VRAM", fmt::format("{} MiB free of {} MiB", text_of(device, "free_mib"), text_of(device, "total_mib")));
    const bool standard = device.value("reserve_is_default", false);
    out += line("Reserve", fmt::format("{} MiB{}; at most {} MiB used", text_of(device, "reserve_mib"), standard ? " (default)" : "", text_of(device, "cap_mib")));
    const Json owners = device.value("owners", Json::object());
    out += line("Used", fmt::format("weights {} MiB, keys and values {} MiB, other {} MiB; other programs {} MiB", text_of(owners, "weights_mib"),
                                    text_of(owners, "kv_mib"), text_of(owners, "scratch_mib"), text_of(owners, "others_mib")));
    if (device.value("in_use", true)) {
        out += line("Model", fmt::format("{} of {} {} on the card", text_of(device, "blocks_resident"), text_of(device, "blocks_total"), text_of(device, "block_name")));
    }
    if (device.contains("last_report") && device["last_report"].is_object()) out += line("Last", text_of(device["last_report"], "text"));
    return out;
}

std::string answer_text(const Json& answer) {
    if (answer.contains("text")) return text_of(answer, "text") + "\n";  // the report of a change
    std::string out;
    for (const Json& device : answer.value("devices", Json::array())) out += device_text(device);
    if (answer.contains("reason")) out += text_of(answer, "reason") + "\n";  // the model is on none
    return out;
}

// N of --reserve-mib, or null of --reserve default.
Result<std::optional<Json>> wish(const std::optional<std::uint64_t>& number, const std::string& word, std::string_view option) {
    if (!word.empty() && word != "default") return fail(ErrorKind::invalid_argument, "{} {} is not known: expected \"default\"", option, quote(word));
    if (!word.empty() && number) return fail(ErrorKind::invalid_argument, "{0}-mib and {0} exclude each other", option);
    if (!word.empty()) return Json();
    if (number) return Json(*number);
    return std::nullopt;
}

Result<> vram(const Program& program, const Options& options) {
    HR_TRY(const auto reserve, wish(options.reserve_mib, options.reserve, "--reserve"));
    HR_TRY(const auto cap, wish(options.cap_mib, options.cap, "--cap"));
    Json change = Json::object();
    if (reserve) change["reserve_mib"] = *reserve;
    if (cap) change["cap_mib"] = *cap;
    const bool sets = !change.empty();
    if (sets && !options.device.empty()) change["device"] = options.device;
    HR_TRY(const auto response, server::ask(options.url, "/v1/vram", options.api_key, sets ? change.dump() : std::string()));
    Json body = Json::parse(response.body, nullptr, false);
    if (response.status != 200 || !body.is_object()) {
        const Json error = body.is_object() ? body.value("error", Json()) : Json();
        return fail(ErrorKind::io, "The server says: {}", error.is_object() ? text_of(error, "message") : fmt::format("status {}", response.status));
    }
    if (!sets && !options.device.empty()) {
        Json one = Json::array();
        for (const Json& device : body.value("devices", Json::array())) {
            if (text_of(device, "id") == options.device) one.push_back(device);
        }
        if (one.empty()) return fail(ErrorKind::not_found, "The server knows of no device {}", quote(options.device));
        body["devices"] = std::move(one);
    }
    if (program.json) {
        program.print_json(body);
    } else {
        write_output(answer_text(body));
    }
    return {};
}

}  // namespace

void add_vram(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "vram", "Read or set the reserve of a running server or window",
                                    [&program, options] { return vram(program, *options); });
    command->add_option("--url", options->url, "The server (default: http://127.0.0.1:8080)")->type_name("URL");
    command->add_option("--api-key", options->api_key, "The server's key")->type_name("KEY");
    command->add_option("--device", options->device, "This device (default: all, or the only one)")->type_name("DEVICE");
    command->add_option("--reserve-mib", options->reserve_mib, "Keep so much VRAM free for other programs")->type_name("N");
    command->add_option("--reserve", options->reserve, "default: back to the default reserve")->type_name("default");
    command->add_option("--cap-mib", options->cap_mib, "Use at most so much VRAM")->type_name("N");
    command->add_option("--cap", options->cap, "default: no limit")->type_name("default");
}

}  // namespace headroom::cli
