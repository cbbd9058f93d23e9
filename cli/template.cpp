#include <chrono>
#include <cstdio>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/quote.h"
#include "core/text/chat_prompt.h"

namespace headroom::cli {
namespace {

struct Options {
    std::string model = "builtin";
    std::string file;
    std::string context;
    std::string now;
};

// "2026-07-26T18:30:00" or a part of it from the left, at least the day.
Result<std::chrono::local_seconds> parse_time(const std::string& text) {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    char mark = 0;
    const int read = std::sscanf(text.c_str(), "%4d-%2d-%2d%c%2d:%2d:%2d", &year, &month, &day, &mark, &hour, &minute, &second);
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    const bool right = (read == 3 || (read >= 6 && (mark == 'T' || mark == ' '))) && date.ok() && hour >= 0 && hour < 24 && minute >= 0 &&
                       minute < 60 && second >= 0 && second < 60;
    if (!right)
        return fail(ErrorKind::invalid_argument, "--now {} is no time such as 2026-07-26T18:30:00", quote(text));
    return std::chrono::local_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

// The template, and the tokens of the model that the context does not name itself.
Result<std::string> template_source(const Options& options, text::Json& context) {
    if (!options.file.empty()) return read_file(from_utf8(options.file), 64 * MiB);
    HR_TRY(const auto file, open_model_file(options.model));
    HR_TRY(const auto source, file.get_string("tokenizer.chat_template"));
    if (!source)
        return fail(ErrorKind::unsupported, "{}: the model has no chat template; name one with --file", file.name());
    HR_TRY(const auto tokenizer, text::Tokenizer::load(file));
    const auto add = [&](const char* name, std::optional<text::TokenId> id) {
        if (!context.contains(name)) context[name] = id ? tokenizer->piece(*id, true) : std::string();
    };
    add("bos_token", tokenizer->bos());
    add("eos_token", tokenizer->eos());
    return std::string(*source);
}

Result<std::string> render(const std::string& source, const text::Json& context, std::chrono::local_seconds now) {
    HR_TRY(const auto chat_template, text::ChatTemplate::parse(source));
    return chat_template.render(context, now);
}

}  // namespace

void add_template(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "template", "Render a chat template", [&program, options]() -> Result<> {
        auto now = text::local_now();
        if (!options->now.empty()) {
            HR_TRY(now, parse_time(options->now));
        }
        HR_TRY(text::Json context, read_json(options->context));
        if (!context.is_object())
            return fail(ErrorKind::invalid_file, "{} is not an object with \"messages\" and the like", quote(options->context));
        HR_TRY(const std::string source, template_source(*options, context));
        text::parse_tool_arguments(context);
        const auto text = render(source, context, now);
        if (!text) {
            if (program.json) program.print_json({{"error", text.error().message}});
            return std::unexpected(text.error());
        }
        if (program.json) {
            program.print_json({{"text", *text}});
        } else {
            write_output(*text);
        }
        return {};
    });
    CLI::Option* model = command->add_option("-m,--model", options->model, "The model whose template is used (default: builtin)");
    model->type_name("MODEL");
    command->add_option("--file", options->file, "A template in a file of its own")->type_name("FILE")->excludes(model);
    command->add_option("--context", options->context, "JSON with messages, tools, add_generation_prompt, …")->type_name("FILE")->required();
    command->add_option("--now", options->now, "The time for the template, such as 2026-07-26T18:30:00 (default: now)")->type_name("TIME");
}

}  // namespace headroom::cli
