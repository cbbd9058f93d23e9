#pragma once

// Errors as values. Every function of core that can fail returns Result<T>; nothing throws across a public header.

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace headroom {

// What kind of thing went wrong. Callers branch on it; the message is for people.
enum class ErrorKind : std::uint8_t {
    invalid_argument,  // the caller asked for something that makes no sense
    invalid_file,      // a file's contents are damaged or hostile
    unsupported,       // understood, but this program cannot do it (an unknown model family, a tensor type)
    not_found,         // a file, a name or an id that is not there
    io,                // the system refused to read or write
    out_of_memory,
    cancelled,         // somebody asked for it to stop
    context_full,      // the prompt does not fit into the context
    template_failed,   // the chat template raised an error
    device,            // a GPU driver call failed
    internal,          // a broken promise inside the program: please report
};

// A machine-readable name ("invalid_file"), for logs and JSON.
[[nodiscard]] const char* to_string(ErrorKind kind) noexcept;

// message: one sentence a user can act on: what, where, expected, seen, what to do. Valid UTF-8, no trailing newline.
struct Error {
    ErrorKind kind = ErrorKind::internal;
    std::string message;
};

template <class T = void>
using Result = std::expected<T, Error>;

// return fail(ErrorKind::invalid_file, "{}: tensor \"{}\" …", path, name);
template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
    return std::unexpected(Error{kind, fmt::format(text, std::forward<Args>(args)...)});
}

}  // namespace headroom

// Leaves the function with the error of `expression` (a Result of any type) if it failed.
#define HR_CHECK(expression)                                                          \
    do {                                                                              \
        if (auto hr_result_ = (expression); !hr_result_) [[unlikely]]                 \
            return std::unexpected(std::move(hr_result_).error());                    \
    } while (false)

#define HR_CONCAT_INNER_(a, b) a##b
#define HR_CONCAT_(a, b) HR_CONCAT_INNER_(a, b)
#define HR_TRY_INNER_(temporary, target, expression)                                  \
    auto temporary = (expression);                                                    \
    if (!temporary) [[unlikely]]                                                      \
        return std::unexpected(std::move(temporary).error());                         \
    target = *std::move(temporary)

// HR_TRY(auto file, gguf::File::open(path)): declares `file`, or leaves the function with the error.
#define HR_TRY(target, expression) HR_TRY_INNER_(HR_CONCAT_(hr_try_, __COUNTER__), target, expression)
