#pragma once

// The few things templates can do with HTML and URLs.

#include <string>
#include <string_view>

#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// & < > ' " as entities.
void escape_html(Text& out, std::string_view text);
// The reverse, for the named entities of XML and numbers; tags and comments are taken out, spaces folded to one.
[[nodiscard]] std::string strip_tags(std::string_view text);
// Percent-encoding of all but letters, digits and "-._~", and "/" where it may stay.
void quote_url(Text& out, std::string_view text, bool keep_slash);

}  // namespace headroom::text::jinja
