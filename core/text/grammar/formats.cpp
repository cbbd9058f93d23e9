#include "core/text/grammar/formats.h"

#include <map>

#include <fmt/format.h>

namespace headroom::text {
namespace {

// RFC 3339. The 29th of February only in leap years.
const std::string kDate =
    R"((?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])))"
    R"(|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29))";
const std::string kTime = R"((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))";

std::string ipv6() {
    const std::string part = "[0-9a-f]{1,4}";
    std::string all = fmt::format("(?:{0}:){{7}}{0}|::(?:{0}(?::{0}){{0,6}})?|(?:{0}:){{1,7}}:", part);
    for (int behind = 1; behind <= 6; ++behind) all += fmt::format("|(?:{0}:){{1,{1}}}(?::{0}){{{2}}}", part, 7 - behind, behind);
    return all;
}

const std::map<std::string, std::string, std::less<>>& patterns() {
    static const std::map<std::string, std::string, std::less<>> all = [] {
        const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?";
        const std::string host = fmt::format(R"({0}(?:\.{0}){{0,7}})", label);
        const std::string name = "[A-Za-z0-9_+-]{1,20}";
        const std::string free = "[A-Za-z0-9._~!$&'()*+,;=:@/?-]{0,200}";
        const std::string byte = R"((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
        const std::string days = R"((?:\d{1,4}Y(?:\d{1,4}M)?(?:\d{1,4}D)?|\d{1,4}M(?:\d{1,4}D)?|\d{1,4}D))";
        const std::string hours = R"(T(?:\d{1,4}H(?:\d{1,4}M)?(?:\d{1,4}S)?|\d{1,4}M(?:\d{1,4}S)?|\d{1,4}S))";
        return std::map<std::string, std::string, std::less<>>{
            {"date", kDate},
            {"time", kTime},
            {"date-time", kDate + "T" + kTime},
            {"duration", fmt::format(R"(P(?:{0}(?:{1})?|{1}|\d{{1,4}}W))", days, hours)},
            {"uuid", "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
            {"email", fmt::format(R"({0}(?:\.{0}){{0,2}}@(?:{1}\.){{1,4}}[A-Za-z]{{2,10}})", name, label)},
            {"hostname", host},
            {"ipv4", fmt::format(R"({0}(?:\.{0}){{3}})", byte)},
            {"ipv6", ipv6()},
            {"uri", fmt::format(R"([a-z][a-z0-9+.-]{{0,15}}://{0}(?::\d{{1,4}})?(?:/{1})?(?:#{1})?)", host, free)},
        };
    }();
    return all;
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
    const auto found = patterns().find(format);
    if (found == patterns().end()) return std::nullopt;
    return "^(?:" + found->second + ")$";
}

std::string known_formats() {
    std::string names;
    for (const auto& [name, pattern] : patterns()) names += (names.empty() ? "" : ", ") + name;
    return names;
}

}  // namespace headroom::text
