#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/quote.h"

namespace headroom::cli {
namespace {

struct Options {
    ModelOptions model;
    std::string tokens;
    int top = 16;
    int greedy = 0;
};

struct Input {
    std::vector<text::TokenId> tokens;
    std::vector<int> positions;
};

// {"tokens": [...], "positions": [...]}; without positions the last one.
Result<Input> read_input(const std::string& file) {
    HR_TRY(const Json json, read_json(file));
    const auto list = [&](const char* name) -> Result<std::vector<std::int32_t>> {
        std::vector<std::int32_t> numbers;
        const auto it = json.find(name);
        if (it == json.end() || !it->is_array())
            return fail(ErrorKind::invalid_file, "{}: expected {{\"tokens\": [...], \"positions\": [...]}}, found no list \"{}\"", quote(file),
                        name);
        for (const Json& element : *it) {
            if (!element.is_number_integer() || element < 0 || element > 0x7FFFFFFF)
                return fail(ErrorKind::invalid_file, "{}: element {} of \"{}\" is {}, expected a number from 0", quote(file),
                            numbers.size(), name, quote(element.dump(-1, ' ', true, Json::error_handler_t::replace)));
            numbers.push_back(element);
        }
        return numbers;
    };
    Input input;
    if (!json.is_object()) return fail(ErrorKind::invalid_file, "{}: expected an object with \"tokens\"", quote(file));
    HR_TRY(input.tokens, list("tokens"));
    if (json.contains("positions")) {
        HR_TRY(input.positions, list("positions"));
    } else if (!input.tokens.empty()) {
        input.positions.push_back(static_cast<int>(input.tokens.size()) - 1);
    }
    return input;
}

// The `count` largest logits, largest first, of equal ones the lowest id first.
Json top_logits(int position, std::span<const float> logits, int count) {
    std::vector<text::TokenId> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const auto kept = std::min(static_cast<std::size_t>(count), order.size());
    const auto better = [&](text::TokenId a, text::TokenId b) {
        const float x = logits[static_cast<std::size_t>(a)];
        const float y = logits[static_cast<std::size_t>(b)];
        return x != y ? x > y : a < b;
    };
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), better);
    order.resize(kept);
    Json values = Json::array();
    for (const text::TokenId id : order) values.push_back(logits[static_cast<std::size_t>(id)]);
    return {{"position", position}, {"ids", order}, {"logits", values}};
}

Result<> evaluate(const Program& program, const Options& options) {
    HR_TRY(const Input input, read_input(options.tokens));
    Interrupt interrupt(program.terminal);
    HR_TRY(const auto model, load_model(program, options.model, interrupt));
    HR_TRY(const auto session, engine::Session::create(model));
    Json positions = Json::array();
    const auto stop = interrupt.begin();
    const auto evaluated = session->evaluate(
        input.tokens, input.positions,
        [&](int position, std::span<const float> logits) { positions.push_back(top_logits(position, logits, options.top)); }, stop);
    // The usage was right, what the file asks for is not.
    if (!evaluated && evaluated.error().kind == ErrorKind::invalid_argument)
        return fail(ErrorKind::invalid_file, "{}: {}", quote(options.tokens), evaluated.error().message);
    HR_CHECK(evaluated);
    Json result{{"positions", positions}};
    if (options.greedy > 0) {
        engine::GenerateRequest request;
        request.prompt = input.tokens;
        request.sampling.temperature = 0;
        request.max_tokens = options.greedy;
        request.ignore_end = true;
        HR_TRY(const auto answer, session->generate(request, {}, stop));
        if (answer.finish == engine::FinishReason::cancelled) return fail(ErrorKind::cancelled, "The evaluation was cancelled");
        result["greedy"] = answer.tokens;
    }
    interrupt.end();

    if (program.json) {
        program.print_json(result);
        return {};
    }
    std::string out;
    for (const Json& entry : positions) {
        out += fmt::format("position {}\n", entry["position"].get<int>());
        for (std::size_t i = 0; i < entry["ids"].size(); ++i) {
            const auto id = entry["ids"][i].get<text::TokenId>();
            out += fmt::format("  {:>10.5f}  {:>7}  {}\n", entry["logits"][i].get<float>(), id, quote(model->tokenizer().piece(id, true)));
        }
    }
    if (result.contains("greedy")) out += fmt::format("greedy {}\n", fmt::join(result["greedy"].get<std::vector<text::TokenId>>(), " "));
    write_output(out);
    return {};
}

}  // namespace

void add_eval(CLI::App& app, Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = add_command(app, program, "eval", "Show the logits behind given tokens",
                                    [&program, options] { return evaluate(program, *options); });
    command->add_option("--tokens", options->tokens, "JSON: {\"tokens\": [...], \"positions\": [...]}")->type_name("FILE")->required();
    command->add_option("--top", options->top, "How many of the largest logits")->type_name("K")->check(positive())->capture_default_str();
    command->add_option("--greedy", options->greedy, "Go on by this many most likely tokens, whatever they are")
        ->type_name("N")
        ->check(not_negative());
    add_compute_options(*command, options->model);
}

}  // namespace headroom::cli
