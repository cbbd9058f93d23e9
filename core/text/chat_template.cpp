#include "core/text/chat_template.h"

#include <exception>

#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/failure.h"
#include "core/text/jinja/parser.h"
#include "core/text/jinja/unicode.h"

namespace headroom::text {

struct ChatTemplate::Parsed {
    jinja::syntax::Template tree;
    TemplateLimits limits;
};

namespace {

// Messages may quote a part of a character: they are made valid.
std::unexpected<Error> failed(const jinja::Failure& failure, int line) {
    std::string message = jinja::valid_utf8(failure.message);
    if (failure.raised) return std::unexpected(Error{ErrorKind::template_failed, std::move(message)});
    return fail(ErrorKind::template_failed, "chat template, line {}: {}", failure.line > 0 ? failure.line : line, message);
}

std::unexpected<Error> failed(const std::exception& error) {
    return fail(ErrorKind::template_failed, "chat template: {}", error.what());
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string source, const TemplateLimits& limits) {
    try {
        jinja::Parser parser(jinja::valid_utf8(std::move(source)), limits.depth);
        return ChatTemplate(std::make_unique<const Parsed>(Parsed{parser.run(), limits}));
    } catch (const jinja::Failure& failure) {
        return failed(failure, 1);
    } catch (const std::exception& error) {
        return failed(error);
    }
}

Result<std::string> ChatTemplate::render(const Json& context, std::chrono::local_seconds now) const {
    try {
        jinja::Evaluator evaluator(parsed_->tree, parsed_->limits, now);
        try {
            return evaluator.render(context);
        } catch (const jinja::Failure& failure) {
            return failed(failure, evaluator.line());
        }
    } catch (const std::exception& error) {
        return failed(error);
    }
}

}  // namespace headroom::text
