#pragma once

// What the tests of elastic runners share: the verdict, and conversations whose words are compared.

#include <span>
#include <vector>

#include "core/base/bytes.h"
#include "core/model/cpu_runner.h"
#include "core/vmm/verdict.h"
#include "tests/model/model_runner.h"
#include "tests/model/opened_model.h"
#include "tests/model/synthetic_model.h"

namespace headroom::test {

constexpr std::uint64_t kSegment = 64 * KiB;  // some experts each

inline vmm::Verdict elastic() {
    return {.kind = vmm::VerdictKind::on, .reason = {}, .granularity_min = kSegment, .granularity_recommended = kSegment, .segment_bytes = kSegment,
            .largest_reservation = 1 * GiB, .observations = {}, .uuid = {}, .driver = {}, .runtime = {}, .os = {}, .tested_at = {}};
}

using Words = std::vector<std::int32_t>;

// Reads the prompt and decodes greedily.
inline Words words(model::Runner& runner, model::Sequence& sequence, std::span<const std::int32_t> prompt, std::int64_t count) {
    must(runner.run({.sequence = sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {}));
    Words chosen;
    must(runner.decode_greedily(sequence, 65, count, [&](std::int32_t token) {
        chosen.push_back(token);
        return true;
    }));
    return chosen;
}

// Words of two sessions by turns, with a change after each 20.
template <class Change>
Words talk(model::Runner& runner, Change change, std::size_t count = 512) {
    Words all;
    const auto a = must(runner.create_sequence()), b = must(runner.create_sequence());
    for (std::size_t round = 0; all.size() < count; ++round) {
        model::Sequence& sequence = round % 2 == 0 ? *a : *b;
        const auto prompt = random_tokens(round % 5 == 0 ? 40 : 3, 50 + round);
        must(runner.run({.sequence = sequence, .tokens = prompt, .rows = {}}, [](auto, auto) {}));
        must(runner.decode_greedily(sequence, 65, 20, [&](std::int32_t token) {
            all.push_back(token);
            if (all.size() % 20 == 10) change();
            return true;
        }));
    }
    return all;
}

// What talk() is to say, by the processor.
inline Words right_words(const SyntheticModel& model, std::size_t count = 512) {
    const OpenedModel opened(model);
    ThreadPool pool(1);
    model::CpuRunner cpu(opened.transformer, pool);
    return talk(cpu, [] {}, count);
}

}  // namespace headroom::test
