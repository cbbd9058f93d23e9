#pragma once

// Python's two ways to format: "%s: %d" % values, and "{}: {:>8}".format(values).

#include "core/text/jinja/arguments.h"
#include "core/text/jinja/runtime.h"

namespace headroom::text::jinja {

// values: a tuple for several, a dict for %(name)s, else the one value.
[[nodiscard]] Value format_percent(Runtime& runtime, const Value& format, const Value& values);
[[nodiscard]] Value format_braces(Evaluator& evaluator, const Value& format, const Arguments& arguments);

}  // namespace headroom::text::jinja
