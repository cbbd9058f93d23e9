#pragma once

// The variable `loop` of a for loop.

#include <optional>
#include <string>
#include <string_view>

#include "core/text/jinja/evaluator.h"

namespace headroom::text::jinja {

class LoopObject final : public Callable {
public:
    // depth: how many runs of the same recursive loop are around this one. `around`: the scope of the for tag.
    LoopObject(Memory* memory, const syntax::For& loop, ScopePtr around, Items items, int depth);

    [[nodiscard]] const Items& items() const noexcept { return items_; }
    void go_to(std::size_t index) const noexcept { index_ = index; }
    // The loop is over: it lets go of what it holds, so that a template which keeps it makes no circle.
    void finish() const noexcept;

    // loop(items): the text of the loop's body over other items.
    [[nodiscard]] Value call(Evaluator& evaluator, Arguments& arguments) const override;
    [[nodiscard]] std::optional<Value> attribute(Evaluator& evaluator, std::string_view name) const override;
    [[nodiscard]] std::string description() const override;

    [[nodiscard]] Value cycle(const Arguments& arguments) const;
    [[nodiscard]] bool changed(Evaluator& evaluator, const Arguments& arguments) const;

private:
    const syntax::For& loop_;
    mutable ScopePtr around_;
    Items items_;
    int depth_;
    mutable std::size_t index_ = 0;
    mutable bool is_over_ = false;
    mutable std::optional<std::vector<Value>> last_changed_;
};

}  // namespace headroom::text::jinja
