#include "core/engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/base/random.h"
#include "core/compute/cpu/ops.h"

namespace headroom::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// In [0, 1), 53 bits.
double next_uniform(std::uint64_t& state) noexcept { return static_cast<double>(next_random(state) >> 11) * 0x1p-53; }

// The probability of a logit against the largest one's, which is 1; never NaN.
double weight(float logit, float largest, float temperature) noexcept {
    const float x = (logit - largest) / temperature;
    return x > -80.0f ? static_cast<double>(cpu::exp(x)) : 0.0;  // below, a float's exp is nothing beside 1
}

constexpr float biased(float logit, float bias) noexcept { return logit + (bias > -100 ? bias : kNever); }

// What is no number, of damaged weights, must not break the order.
float known(float logit) noexcept { return std::isnan(logit) ? kNever : logit; }

constexpr auto likelier = [](const auto& a, const auto& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; };

}  // namespace

Result<> check(const SamplingOptions& options) {
    const auto refuse = [](std::string_view name, double value, std::string_view expected) {
        return fail(ErrorKind::invalid_argument, "{} is {}, expected {}", name, value, expected);
    };
    const auto between = [](float value, float low, float high) { return value >= low && value <= high; };  // refuses NaN
    if (!between(options.temperature, 0, 100)) return refuse("The temperature", options.temperature, "0 (greedy) to 100");
    if (options.top_k < 0) return refuse("top-k", options.top_k, "0 (off) or more");
    if (!(options.top_p > 0 && options.top_p <= 1)) return refuse("top-p", options.top_p, "more than 0, and at most 1 (off)");
    if (!between(options.min_p, 0, 1)) return refuse("min-p", options.min_p, "0 (off) to 1");
    if (!between(options.repeat_penalty, 0.01f, 100)) {
        return refuse("The repetition penalty", options.repeat_penalty, "0.01 to 100 (1: off)");
    }
    if (!between(options.presence_penalty, -100, 100)) return refuse("The presence penalty", options.presence_penalty, "-100 to 100");
    if (!between(options.frequency_penalty, -100, 100)) {
        return refuse("The frequency penalty", options.frequency_penalty, "-100 to 100");
    }
    if (options.penalty_window < -1) return refuse("The window of the penalties", options.penalty_window, "-1 (all) or more");
    for (const auto& [id, bias] : options.logit_bias) {
        if (id < 0) return refuse("A token id of the logit bias", id, "0 or more");
        if (!std::isfinite(bias)) return refuse("A logit bias", bias, "a finite number");
    }
    return {};
}

Sampler::Sampler(const SamplingOptions& options) : options_(options) {
    if (options.seed) {
        seed_ = *options.seed;
    } else {
        std::random_device device;
        seed_ = (std::uint64_t{device()} << 32) | device();
    }
    state_ = seed_;
}

std::uint64_t Sampler::seed() const noexcept { return seed_; }

bool Sampler::penalizes() const noexcept {
    return options_.repeat_penalty != 1 || options_.presence_penalty != 0 || options_.frequency_penalty != 0;
}

std::span<const TokenId> Sampler::penalized(std::span<const TokenId> history) const noexcept {
    if (!penalizes()) return {};
    const auto window = static_cast<std::size_t>(options_.penalty_window);
    return options_.penalty_window >= 0 && history.size() > window ? history.last(window) : history;
}

float Sampler::penalize(float logit, std::ptrdiff_t times) const noexcept {
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    logit -= options_.presence_penalty;
    return logit - options_.frequency_penalty * static_cast<float>(times);
}

std::size_t Sampler::needed(std::span<const TokenId> history) const noexcept {
    const bool raises = options_.repeat_penalty < 1 || options_.presence_penalty < 0 || options_.frequency_penalty < 0 ||
                        std::ranges::any_of(options_.logit_bias, [](const auto& of) { return of.second > 0; });
    if (raises || (options_.temperature > 0 && options_.top_k == 0)) return 0;
    const std::size_t wanted = options_.temperature > 0 ? static_cast<std::size_t>(options_.top_k) : 1;
    return wanted + penalized(history).size() + options_.logit_bias.size();
}

TokenId Sampler::sample(std::span<float> logits, std::span<const TokenId> history) {
    for (const auto& [id, bias] : options_.logit_bias) {
        if (static_cast<std::size_t>(id) < logits.size()) logits[static_cast<std::size_t>(id)] = biased(logits[static_cast<std::size_t>(id)], bias);
    }
    const auto window = penalized(history);
    seen_.assign(window.begin(), window.end());
    std::ranges::sort(seen_);
    for (auto first = seen_.begin(); first != seen_.end();) {
        const auto last = std::upper_bound(first, seen_.end(), *first);
        if (*first >= 0 && static_cast<std::size_t>(*first) < logits.size()) {
            float& logit = logits[static_cast<std::size_t>(*first)];
            logit = penalize(logit, last - first);
        }
        first = last;
    }
    for (float& logit : logits) logit = known(logit);
    const auto best = static_cast<TokenId>(cpu::argmax(logits.data(), static_cast<std::int64_t>(logits.size())));
    const float largest = logits[static_cast<std::size_t>(best)];
    if (options_.temperature == 0 || std::isinf(largest)) return best;

    // The candidates. With top-k: those k. Without: all, of which the likeliest are sorted in growing pieces, as many as the later steps need.
    candidates_.clear();
    sorted_ = 0;
    if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < logits.size()) {
        // A heap of the k best, the least likely on top.
        const auto k = static_cast<std::size_t>(options_.top_k);
        for (std::size_t id = 0; id < logits.size(); ++id) {
            const Candidate candidate{static_cast<TokenId>(id), logits[id]};
            if (candidates_.size() < k) {
                candidates_.push_back(candidate);
                std::ranges::push_heap(candidates_, likelier);
            } else if (candidate.logit > candidates_.front().logit) {  // ids ascend: of equals the first ones stay
                std::ranges::pop_heap(candidates_, likelier);
                candidates_.back() = candidate;
                std::ranges::push_heap(candidates_, likelier);
            }
        }
        return draw_from_few();
    }
    double total = 0;
    for (std::size_t id = 0; id < logits.size(); ++id) {
        const double p = weight(logits[id], largest, options_.temperature);
        if (p <= 0) continue;
        total += p;
        candidates_.push_back({static_cast<TokenId>(id), logits[id]});
    }
    return draw(best, largest, total);
}

TokenId Sampler::sample(std::span<const model::Likely> likeliest, std::span<const TokenId> history) {
    const auto window = penalized(history);
    seen_.assign(window.begin(), window.end());
    std::ranges::sort(seen_);
    candidates_.clear();
    for (const auto& [id, plain] : likeliest) {
        float logit = plain;
        if (const auto bias = options_.logit_bias.find(id); bias != options_.logit_bias.end()) logit = biased(logit, bias->second);
        if (const auto times = std::ranges::equal_range(seen_, id); !times.empty()) logit = penalize(logit, std::ranges::ssize(times));
        candidates_.push_back({id, known(logit)});
    }
    return draw_from_few();
}

TokenId Sampler::draw_from_few() {
    std::ranges::sort(candidates_, likelier);
    const Candidate best = candidates_.front();
    if (options_.temperature == 0 || std::isinf(best.logit)) return best.id;
    candidates_.resize(std::min(candidates_.size(), static_cast<std::size_t>(options_.top_k)));
    sorted_ = candidates_.size();
    double total = 0;
    for (const Candidate& candidate : candidates_) total += weight(candidate.logit, best.logit, options_.temperature);
    return draw(best.id, best.logit, total);
}

TokenId Sampler::draw(TokenId best, float largest, double total) {
    const auto probability = [&](const Candidate& candidate) { return weight(candidate.logit, largest, options_.temperature); };
    // top-p keeps the likeliest tokens that together reach it, min-p those not too far below the likeliest.
    const auto probability_at = [&](std::size_t i) {
        if (i == sorted_) {
            const auto first = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_);
            sorted_ = std::min(std::max<std::size_t>(128, sorted_ * 8), candidates_.size());
            std::partial_sort(first, candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_), candidates_.end(), likelier);
        }
        return probability(candidates_[i]);
    };
    std::size_t kept = candidates_.size();
    double mass = total;
    if (options_.top_p < 1 || options_.min_p > 0) {
        const double wanted = options_.top_p < 1 ? total * static_cast<double>(options_.top_p) : std::numeric_limits<double>::infinity();
        mass = 0;
        for (kept = 0; kept < candidates_.size() && mass < wanted; ++kept) {
            const double p = probability_at(kept);
            if (kept > 0 && p < static_cast<double>(options_.min_p)) break;
            mass += p;
        }
    }

    TokenId drawn = best;
    double rest = next_uniform(state_) * mass;
    for (std::size_t i = 0; i < kept && rest >= 0; ++i) {
        const double p = probability_at(i);
        if (p <= 0) break;  // rounding left a crumb: the last possible one
        drawn = candidates_[i].id;
        rest -= p;
    }
    return drawn;
}

}  // namespace headroom::engine
