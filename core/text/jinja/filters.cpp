#include "core/text/jinja/filters.h"

#include <algorithm>

#include "core/text/jinja/filter_functions.h"

namespace headroom::text::jinja {
namespace {

struct NamedFilter {
    std::string_view name;
    FilterFunction function;
};

// Sorted by name.
constexpr NamedFilter kFilters[] = {
    {"abs", filter::absolute},
    {"attr", filter::attribute},
    {"batch", filter::batch},
    {"capitalize", filter::capitalize},
    {"center", filter::center},
    {"count", filter::length},
    {"d", filter::fallback},
    {"default", filter::fallback},
    {"dictsort", filter::dict_sort},
    {"e", filter::escape},
    {"escape", filter::escape},
    {"filesizeformat", filter::file_size},
    {"first", filter::first},
    {"float", filter::real},
    {"forceescape", filter::force_escape},
    {"format", filter::format},
    {"groupby", filter::group_by},
    {"indent", filter::indent},
    {"int", filter::integer},
    {"items", filter::items},
    {"join", filter::join},
    {"last", filter::last},
    {"length", filter::length},
    {"list", filter::list},
    {"lower", filter::lower},
    {"map", filter::map},
    {"max", filter::max},
    {"min", filter::min},
    {"reject", filter::reject},
    {"rejectattr", filter::reject_attribute},
    {"replace", filter::replace},
    {"reverse", filter::reverse},
    {"round", filter::round},
    {"safe", filter::safe},
    {"select", filter::select},
    {"selectattr", filter::select_attribute},
    {"slice", filter::slice},
    {"sort", filter::sort},
    {"string", filter::string},
    {"striptags", filter::strip_tags},
    {"sum", filter::sum},
    {"title", filter::title},
    {"tojson", filter::tojson},
    {"trim", filter::trim},
    {"truncate", filter::truncate},
    {"unique", filter::unique},
    {"upper", filter::upper},
    {"urlencode", filter::url_encode},
    {"wordcount", filter::word_count},
    {"wordwrap", filter::word_wrap},
    {"xmlattr", filter::xml_attributes},
};

}  // namespace

FilterFunction find_filter(std::string_view name) noexcept {
    const auto* found = std::lower_bound(std::begin(kFilters), std::end(kFilters), name,
                                         [](const NamedFilter& f, std::string_view n) { return f.name < n; });
    return found != std::end(kFilters) && found->name == name ? found->function : nullptr;
}

}  // namespace headroom::text::jinja
