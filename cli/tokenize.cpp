#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/options.h"

namespace headroom::cli {
namespace {

struct Options {
    bool special = false;
    bool no_bos = false;
    std::string file;
    std::optional<std::string> text;
};

}  // namespace

void add_tokenize(CLI::App& app, Program& program) {
    auto options = std::make_shared<ModelOptions>();
    auto own = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "tokenize", "Turn text into token ids", [&program, options, own]() -> Result<> {
        HR_TRY(const auto file, open_model_file(options->model));
        HR_TRY(const auto tokenizer, text::Tokenizer::load(file));
        for (const std::string& warning : tokenizer->warnings()) program.notice("warning: " + warning);
        HR_TRY(const std::string input, read_text(program, own->text, own->file, "TEXT or --file"));
        const auto ids = tokenizer->encode(input, {.parse_special = own->special, .add_bos = !own->no_bos});
        if (program.json) {
            program.print_json({{"ids", ids}});
        } else {
            write_output(fmt::format("{}\n", fmt::join(ids, " ")));
        }
        return {};
    });
    add_model_option(*command, *options);
    command->add_flag("--special", own->special, "Special tokens written in the text (<|im_end|>) become those tokens");
    command->add_flag("--no-bos", own->no_bos, "No beginning-of-sequence token, even where the model wants one");
    command->add_option("--file", own->file, "Read the text from this file")->type_name("FILE");
    command->add_option("TEXT", own->text, "The text (default: standard input)")->type_name("");
}

}  // namespace headroom::cli
