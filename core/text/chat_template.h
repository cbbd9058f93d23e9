#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/text/template_limits.h"

namespace headroom::text {

using Json = nlohmann::ordered_json;  // tojson prints keys in their order

// A Jinja chat template: parsed once, rendered many times. Immutable; render() is safe from any thread.
// Follows Jinja 2 as the `transformers` library sets it up: trim_blocks, lstrip_blocks, loop controls, {% generation %},
// raise_exception, strftime_now, tojson without HTML escapes and with ensure_ascii=False.
class ChatTemplate {
public:
    // Errors: template_failed, with line and reason.
    [[nodiscard]] static Result<ChatTemplate> parse(std::string source, const TemplateLimits& limits = {});

    // context: an object with messages, tools, add_generation_prompt, bos_token, eos_token, … `now` is local time for strftime_now.
    // Errors: template_failed (raise_exception's own words, or line and reason, or the limit that was met).
    [[nodiscard]] Result<std::string> render(const Json& context, std::chrono::local_seconds now) const;

    ChatTemplate(ChatTemplate&&) noexcept;
    ChatTemplate& operator=(ChatTemplate&&) noexcept;
    ~ChatTemplate();

    struct Parsed;  // the syntax tree: core/text/jinja/

private:
    explicit ChatTemplate(std::unique_ptr<const Parsed> parsed);
    std::unique_ptr<const Parsed> parsed_;
};

}  // namespace headroom::text
