#include "core/text/jinja/from_json.h"

#include <nlohmann/json.hpp>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text::jinja {
namespace {

using Json = nlohmann::ordered_json;  // as in chat_template.h

Value convert(Runtime& runtime, const Json& json, int level) {
    if (level > runtime.limits().depth) fail("the chat's data nests more than {} deep", runtime.limits().depth);
    runtime.step();
    switch (json.type()) {
        case Json::value_t::boolean: return Value(json.get<bool>());
        case Json::value_t::number_integer: return Value(json.get<std::int64_t>());
        case Json::value_t::number_unsigned: {
            const auto number = json.get<std::uint64_t>();
            if (number > INT64_MAX) fail("the number {} in the chat's data does not fit into 64 bits", number);
            return Value(static_cast<std::int64_t>(number));
        }
        case Json::value_t::number_float: return Value(json.get<double>());
        case Json::value_t::string: return runtime.string(valid_utf8(json.get_ref<const std::string&>()));
        case Json::value_t::array: {
            std::vector<Value> items;
            items.reserve(json.size());
            for (const Json& item : json) items.push_back(convert(runtime, item, level + 1));
            return runtime.list(std::move(items));
        }
        case Json::value_t::object: {
            std::vector<Entry> entries;
            entries.reserve(json.size());
            for (const auto& [key, item] : json.items()) {
                entries.emplace_back(runtime.string(valid_utf8(key)), convert(runtime, item, level + 1));
            }
            return runtime.dict(std::move(entries));
        }
        default: return {};
    }
}

}  // namespace

Value from_json(Runtime& runtime, const nlohmann::ordered_json& json) { return convert(runtime, json, 1); }

}  // namespace headroom::text::jinja
