#include <algorithm>
#include <cmath>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/bytes.h"
#include "core/base/quote.h"
#include "core/text/chat_template.h"

namespace headroom::cli {
namespace {

Json to_json(const gguf::Array& array) {
    Json list = Json::array();
    if (array.element == gguf::ValueType::string) {
        for (const std::string_view text : array.strings) list.push_back(text);
    } else if (array.element == gguf::ValueType::array) {
        for (const gguf::Array& inner : array.arrays) list.push_back(to_json(inner));
    } else {
        const bool real = array.element == gguf::ValueType::f32 || array.element == gguf::ValueType::f64;
        for (std::uint64_t i = 0; i < array.count; ++i) {
            if (array.element == gguf::ValueType::boolean) {
                list.push_back(array.integer(i) != 0);
            } else if (real) {
                list.push_back(array.number(i));
            } else if (array.element == gguf::ValueType::u64) {
                list.push_back(static_cast<std::uint64_t>(array.integer(i)));
            } else {
                list.push_back(array.integer(i));
            }
        }
    }
    return list;
}

Json to_json(const gguf::Value& value) {
    return std::visit(
        [](const auto& data) -> Json {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(data)>, gguf::Array>) {
                return to_json(data);
            } else {
                return data;
            }
        },
        value.data);
}

// What would stand in the way beside what the engine finds: the tokenizer and the chat template.
std::string text_problem(const gguf::File& file, std::vector<std::string>& warnings) {
    const auto tokenizer = text::Tokenizer::load(file);
    if (!tokenizer) return tokenizer.error().message;
    for (const std::string& warning : (*tokenizer)->warnings()) warnings.push_back(warning);
    const auto source = file.get_string("tokenizer.chat_template");
    if (!source) return source.error().message;
    if (*source) {
        const auto chat_template = text::ChatTemplate::parse(std::string(**source));
        if (!chat_template) warnings.push_back("The chat template cannot be used: " + chat_template.error().message);
    }
    return {};
}

Json inspection_json(const gguf::File& file, const engine::Inspection& inspection, const std::vector<std::string>& warnings) {
    const engine::ModelInfo& info = inspection.info;
    Json metadata = Json::object();
    for (const auto& [key, value] : file.metadata()) metadata[std::string(key)] = to_json(value);
    Json tensors = Json::array();
    for (const gguf::Tensor& tensor : file.tensors()) {
        Json shape = Json::array();
        for (int i = 0; i < tensor.dimensions; ++i) shape.push_back(tensor.shape[static_cast<std::size_t>(i)]);
        tensors.push_back({{"name", tensor.name}, {"type", gguf::type_info(tensor.type).name}, {"shape", shape}, {"bytes", tensor.data.size()}});
    }
    Json result{{"architecture", info.family},
                {"name", info.name},
                {"parameters", info.parameters},
                {"file_bytes", info.file_bytes},
                {"files", std::max<std::size_t>(1, file.shards().size())},
                {"gguf_version", file.version()},
                {"quantization", info.quantization},
                {"context_length", info.trained_context},
                {"layers", info.layers},
                {"vocabulary", info.vocabulary},
                {"experts", info.experts},
                {"experts_used", info.experts_used},
                {"has_chat_template", info.has_chat_template},
                {"estimate",
                 {{"context", info.context},
                  {"kv_type", cpu::to_string(info.kv_type)},
                  {"weights_bytes", inspection.estimate.weights_bytes},
                  {"kv_bytes", inspection.estimate.kv_bytes},
                  {"scratch_bytes", inspection.estimate.scratch_bytes},
                  {"ram_bytes", inspection.estimate.total()},
                  {"vram_bytes", 0},
                  {"available_ram_bytes", inspection.estimate.available_ram},
                  {"fits", inspection.estimate.fits()}}},
                {"usable", inspection.problem.empty()},
                {"problem", inspection.problem.empty() ? Json() : Json(inspection.problem)},
                {"warnings", warnings}};
    result["metadata"] = std::move(metadata);
    result["tensors"] = std::move(tensors);
    return result;
}

// A value on one line: long texts and arrays by their beginning.
std::string short_value(const gguf::Value& value) {
    constexpr std::size_t kBytes = 80;
    constexpr std::uint64_t kElements = 6;
    if (const auto* text = std::get_if<std::string_view>(&value.data)) return quote(*text, kBytes);
    const auto* array = std::get_if<gguf::Array>(&value.data);
    if (array == nullptr) return to_json(value).dump();
    std::string line = "[";
    for (std::uint64_t i = 0; i < std::min(array->count, kElements); ++i) {
        if (i > 0) line += ", ";
        if (array->element == gguf::ValueType::string) {
            line += quote(array->strings[i], 20);
        } else if (array->element == gguf::ValueType::array) {
            line += "[…]";
        } else {
            line += fmt::format("{}", array->number(i));
        }
    }
    return line + (array->count > kElements ? fmt::format(", … {} in all]", array->count) : "]");
}

void print_inspection(const gguf::File& file, const engine::Inspection& inspection, const std::vector<std::string>& warnings) {
    const engine::ModelInfo& info = inspection.info;
    std::string out;
    const auto line = [&](std::string_view name, const std::string& text) { out += fmt::format("{:<16}{}\n", name, text); };
    line("Name", info.name);
    line("Architecture", info.family + (info.experts > 0 ? fmt::format(", {} of {} experts", info.experts_used, info.experts) : ""));
    line("Parameters", fmt::format("{:.2f} M", static_cast<double>(info.parameters) / 1e6));
    line("Quantization", info.quantization);
    line("File", fmt::format("{} in {} file{}, GGUF version {}", format_bytes(info.file_bytes), std::max<std::size_t>(1, file.shards().size()),
                             file.shards().size() > 1 ? "s" : "", file.version()));
    line("Context", fmt::format("{} tokens", info.trained_context));
    line("Vocabulary", fmt::format("{} tokens", info.vocabulary));
    line("Chat template", info.has_chat_template ? "yes" : "no");
    if (inspection.problem.empty()) {
        const engine::Estimate& estimate = inspection.estimate;
        line("RAM", fmt::format("{} with a context of {}: {} of weights, {} for a conversation, {} to work in", format_bytes(estimate.total()),
                                info.context, format_bytes(estimate.weights_bytes), format_bytes(estimate.kv_bytes),
                                format_bytes(estimate.scratch_bytes)));
        line("VRAM", "none: computes on the CPU");
        if (estimate.available_ram > 0)
            line("", fmt::format("{} of RAM are free now{}", format_bytes(estimate.available_ram), estimate.fits() ? "" : ": too little"));
    } else {
        line("Cannot be run", inspection.problem);
    }
    for (const std::string& warning : warnings) line("Warning", warning);

    out += "\nMetadata\n";
    for (const auto& [key, value] : file.metadata()) out += fmt::format("  {} = {}\n", printable(key, 80), short_value(value));
    out += fmt::format("\n{} tensors\n", file.tensors().size());
    for (const gguf::Tensor& tensor : file.tensors()) {
        std::string shape;
        for (int i = 0; i < tensor.dimensions; ++i) shape += (i > 0 ? " x " : "") + std::to_string(tensor.shape[static_cast<std::size_t>(i)]);
        out += fmt::format("  {:<36} {:<7} {:<20} {}\n", printable(tensor.name, 80), gguf::type_info(tensor.type).name, shape,
                           format_bytes(tensor.data.size()));
    }
    write_output(out);
}

}  // namespace

void add_inspect(CLI::App& app, Program& program) {
    auto options = std::make_shared<ModelOptions>();
    CLI::App* command = add_command(app, program, "inspect", "Show what is in a model file and what it needs", [&program, options]() -> Result<> {
        HR_TRY(const auto file, open_model_file(options->model));
        engine::Inspection inspection = engine::inspect(file, options->context, options->kv_type);
        std::vector<std::string> warnings = inspection.info.warnings;
        const std::string problem = text_problem(file, warnings);
        if (inspection.problem.empty()) inspection.problem = problem;
        if (program.json) {
            program.print_json(inspection_json(file, inspection, warnings));
        } else {
            print_inspection(file, inspection, warnings);
        }
        return {};
    });
    command->add_option("MODEL,-m,--model", options->model, "A GGUF file, a name from the model folder, or builtin (the default)")
        ->type_name("MODEL");
    command->add_option("--ctx", options->context, "Length of the context for the estimate")->type_name("N")->check(positive());
    add_kv_option(*command, *options);
}

}  // namespace headroom::cli
