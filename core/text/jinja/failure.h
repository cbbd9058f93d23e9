#pragma once

// How the interpreter gives up. Failures travel as exceptions inside core/text/jinja only: ChatTemplate turns them into errors.

#include <string>
#include <utility>

#include <fmt/format.h>

namespace headroom::text::jinja {

struct Failure {
    std::string message;
    int line = 0;         // 0: where the evaluator stands
    bool raised = false;  // the template's own words (raise_exception)
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    throw Failure{fmt::format(text, std::forward<Args>(args)...)};
}

template <class... Args>
[[noreturn]] void fail_at(int line, fmt::format_string<Args...> text, Args&&... args) {
    throw Failure{fmt::format(text, std::forward<Args>(args)...), line};
}

}  // namespace headroom::text::jinja
