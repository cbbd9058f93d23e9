#include "cli/commands.h"
#include "cli/options.h"

namespace headroom::cli {

void add_detokenize(CLI::App& app, Program& program) {
    auto options = std::make_shared<ModelOptions>();
    auto ids = std::make_shared<std::vector<text::TokenId>>();
    CLI::App* command = add_command(app, program, "detokenize", "Turn token ids into text", [&program, options, ids]() -> Result<> {
        HR_TRY(const auto file, open_model_file(options->model));
        HR_TRY(const auto tokenizer, text::Tokenizer::load(file));
        for (const text::TokenId id : *ids)
            if (id < 0 || id >= tokenizer->size())
                return fail(ErrorKind::not_found, "The token id {} is outside the model's vocabulary of {} tokens", id, tokenizer->size());
        const std::string text = tokenizer->decode(*ids, true);
        if (program.json) {
            program.print_json({{"text", text}});
        } else {
            write_output(text + "\n");
        }
        return {};
    });
    add_model_option(*command, *options);
    command->add_option("IDS", *ids, "The ids, with spaces between")->type_name("")->required();
}

}  // namespace headroom::cli
