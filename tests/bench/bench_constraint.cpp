// What holding a generation to a schema costs (docs/performance.md): bench_constraint MODEL.gguf SCHEMA.json…
// The schema files are those of tests/server/schemas. Only the model's vocabulary is read. Prints a table.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/gguf/file.h"
#include "core/text/constraint.h"
#include "core/text/json_schema.h"
#include "core/text/tokenizer.h"

using namespace headroom;
using text::TokenId;

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

struct Times {
    std::vector<double> masks;  // ms
    double accepting = 0;       // ms in all
};

// A generation that takes any token that may follow, now and then one towards the end.
Times generate(const std::shared_ptr<const text::TokenGrammar>& grammar, const text::TokenTrie& trie, unsigned seed) {
    std::mt19937 random(seed);
    text::Constraint constraint(grammar);
    std::vector<float> logits(static_cast<std::size_t>(trie.vocabulary()));
    Times times;
    for (int step = 0; step < 200 && !constraint.finished(); ++step) {
        std::ranges::fill(logits, 0.0f);
        auto start = Clock::now();
        if (!constraint.mask(logits)) break;
        times.masks.push_back(ms_since(start));
        const std::string ending = random() % 2 == 0 ? constraint.shortest_ending() : std::string();
        std::vector<TokenId> ids;
        for (std::size_t i = 0; i < logits.size(); ++i) {
            const auto id = static_cast<TokenId>(i);
            if (logits[i] == 0 && (ending.empty() || (!trie.bytes(id).empty() && ending.starts_with(trie.bytes(id))))) ids.push_back(id);
        }
        start = Clock::now();
        if (ids.empty() || !constraint.accept(ids[random() % ids.size()])) break;
        times.accepting += ms_since(start);
    }
    return times;
}

double at(std::vector<double>& sorted, double part) {
    std::ranges::sort(sorted);
    return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

int run(std::span<char*> arguments) {
    if (arguments.size() < 3) {
        fmt::print(stderr, "usage: bench_constraint MODEL.gguf SCHEMA.json…\n");
        return 2;
    }
    const auto file = gguf::File::open(arguments[1]);
    if (!file) {
        fmt::print(stderr, "{}\n", file.error().message);
        return 1;
    }
    const auto tokenizer = text::Tokenizer::load(*file);
    if (!tokenizer) {
        fmt::print(stderr, "{}\n", tokenizer.error().message);
        return 1;
    }
    auto start = Clock::now();
    const auto trie = text::TokenTrie::build(**tokenizer);
    fmt::print("{} tokens, {} nodes, built in {:.0f} ms\n", trie->vocabulary(), trie->nodes().size(), ms_since(start));
    fmt::print("| {:28} | {:>10} | {:>11} | {:>10} | {:>10} | {:>12} | {:>9} |\n", "schema", "compile ms", "first max ms", "later p50", "later p99", "later max ms", "accept us");
    for (const char* path : arguments.subspan(2)) {
        std::stringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        const text::Json json = text::Json::parse(text.str(), nullptr, false);
        start = Clock::now();
        const auto grammar = json.is_object() && json.contains("schema") ? text::compile_json_schema(json["schema"])
                                                                         : Result<std::shared_ptr<const text::Grammar>>(text::any_json_object());
        const double compiling = ms_since(start);
        if (!grammar) continue;
        const auto over = std::make_shared<const text::TokenGrammar>(*grammar, trie);
        Times first = generate(over, *trie, 1), later;
        for (unsigned seed = 2; seed < 30; ++seed) {
            const Times more = generate(over, *trie, seed);
            later.masks.insert(later.masks.end(), more.masks.begin(), more.masks.end());
            later.accepting += more.accepting;
        }
        fmt::print("| {:28} | {:10.2f} | {:12.2f} | {:10.3f} | {:10.3f} | {:12.2f} | {:9.1f} |\n", std::filesystem::path(path).stem().string(), compiling, at(first.masks, 1),
                   at(later.masks, 0.5), at(later.masks, 0.99), at(later.masks, 1), 1000 * later.accepting / static_cast<double>(later.masks.size()));
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(std::span(argv, static_cast<std::size_t>(argc)));
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
