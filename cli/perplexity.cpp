#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/bytes.h"
#include "core/base/paths.h"
#include "core/base/quote.h"

namespace headroom::cli {
namespace {

constexpr int kDefaultPiece = 512;  // tokens; what published figures are measured with

struct Options {
    ModelOptions model;
    std::string file;
};

// -log p of a token.
double surprise(std::span<const float> logits, text::TokenId id) {
    const double largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
    return std::log(sum) + largest - static_cast<double>(logits[static_cast<std::size_t>(id)]);
}

// The text is cut into pieces of the context's length. The first half of each is read without being judged; a rest that is shorter
// than a piece is left out. A text that is shorter than one piece is judged from its second token on.
Result<> perplexity(const Program& program, Options options) {
    HR_TRY(const std::string text, read_file(from_utf8(options.file), GiB));
    if (options.model.context == 0) options.model.context = kDefaultPiece;
    Interrupt interrupt(program.terminal);
    HR_TRY(const auto model, load_model(program, options.model, interrupt));
    HR_TRY(const auto session, engine::Session::create(model));
    const text::Tokenizer& tokenizer = model->tokenizer();
    std::vector<text::TokenId> tokens = tokenizer.encode(text, {});
    if (tokens.size() < 2) return fail(ErrorKind::invalid_file, "{} is too short: perplexity needs at least two tokens", quote(options.file));

    const auto context = static_cast<std::size_t>(model->info().context);
    const bool whole = tokens.size() < context;
    const std::size_t piece = whole ? tokens.size() : context;
    const std::size_t pieces = tokens.size() / piece;
    const std::size_t first = whole ? 0 : piece / 2;
    std::vector<int> positions(piece - 1 - first);  // the last token has no successor in the piece
    std::iota(positions.begin(), positions.end(), static_cast<int>(first));

    double sum = 0;
    std::uint64_t judged = 0;
    const auto stop = interrupt.begin();
    for (std::size_t i = 0; i < pieces; ++i) {
        const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i * piece);
        std::vector<text::TokenId> part(begin, begin + static_cast<std::ptrdiff_t>(piece));
        if (tokenizer.adds_bos() && tokenizer.bos()) part.front() = *tokenizer.bos();
        HR_CHECK(session->evaluate(
            part, positions,
            [&](int position, std::span<const float> logits) {
                sum += surprise(logits, part[static_cast<std::size_t>(position) + 1]);
                ++judged;
            },
            stop));
        if (program.terminal.error && !program.json)
            program.notice(fmt::format("{} of {}: {:.4f}", i + 1, pieces, std::exp(sum / static_cast<double>(judged))));
    }
    interrupt.end();
    const double result = std::exp(sum / static_cast<double>(judged));
    if (program.json) {
        program.print_json({{"perplexity", result}, {"tokens", judged}, {"pieces", pieces}, {"context", piece}});
    } else {
        write_output(fmt::format("{:.4f} over {} tokens\n", result, judged));
    }
    return {};
}

}  // namespace

void add_perplexity(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "perplexity", "Measure how well a model predicts a text",
                                    [&program, options] { return perplexity(program, *options); });
    command->add_option("FILE", options->file, "The text")->type_name("")->required();
    add_compute_options(*command, options->model);
    command->get_option("--ctx")->description("Length of the pieces the text is cut into (default: 512)");
}

}  // namespace headroom::cli
