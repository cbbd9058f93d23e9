#include "core/text/stream.h"

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"

namespace headroom::text {

std::string Utf8Stream::push(std::string_view bytes) {
    pending_.append(bytes);
    std::string out;
    std::string_view rest = pending_;
    while (!rest.empty()) {
        const Utf8Step step = utf8_step(rest);
        if (step.status == Utf8Status::incomplete) break;
        out.append(step.status == Utf8Status::valid ? rest.substr(0, step.length) : kReplacement);
        rest.remove_prefix(step.length);
    }
    pending_.erase(0, pending_.size() - rest.size());
    return out;
}

std::string Utf8Stream::finish() {
    const bool unfinished = !pending_.empty();
    pending_.clear();
    return unfinished ? std::string(kReplacement) : std::string();
}

StopMatcher::StopMatcher(std::vector<std::string> stops) {
    for (std::string& stop : stops) {
        if (stop.empty()) continue;
        Stop entry{std::move(stop), {}, 0};
        entry.fallback.resize(entry.text.size());
        std::size_t matched = 0;
        for (std::size_t i = 1; i < entry.text.size(); ++i) {
            matched = entry.advance(matched, entry.text[i]);
            entry.fallback[i] = matched;
        }
        stops_.push_back(std::move(entry));
    }
}

std::size_t StopMatcher::Stop::advance(std::size_t length, char next) const noexcept {
    while (length > 0 && text[length] != next) length = fallback[length - 1];
    return text[length] == next ? length + 1 : 0;
}

StopMatcher::Out StopMatcher::push(std::string_view chunk) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
        std::size_t ended = 0;  // length of the longest stop sequence that ends with this byte
        for (Stop& stop : stops_) {
            stop.matched = stop.advance(stop.matched, chunk[i]);
            if (stop.matched == stop.text.size()) ended = std::max(ended, stop.matched);
        }
        if (ended == 0) continue;
        held_.append(chunk.substr(0, i + 1));
        held_.resize(held_.size() - ended);
        for (Stop& stop : stops_) stop.matched = 0;
        return {std::exchange(held_, {}), true};
    }
    held_.append(chunk);
    std::size_t keep = 0;
    for (const Stop& stop : stops_) keep = std::max(keep, stop.matched);
    Out out{held_.substr(0, held_.size() - keep), false};
    held_.erase(0, held_.size() - keep);
    return out;
}

std::string StopMatcher::finish() {
    for (Stop& stop : stops_) stop.matched = 0;
    return std::exchange(held_, {});
}

}  // namespace headroom::text
