#include "core/text/jinja/loop.h"

#include <algorithm>

#include "core/text/jinja/failure.h"
#include "core/text/jinja/operators.h"

namespace headroom::text::jinja {
namespace {

int depth_of(const Items& items) noexcept {
    int depth = 0;
    for (const Value& item : items) depth = std::max(depth, item.depth());
    return depth + 1;
}

// loop.cycle and loop.changed, as values.
class LoopMethod final : public Callable {
public:
    LoopMethod(Memory* memory, Value loop, bool is_cycle)
        : Callable(memory, sizeof(LoopMethod), loop.depth() + 1), loop_(std::move(loop)), is_cycle_(is_cycle) {}
    [[nodiscard]] Value call(Evaluator& evaluator, Arguments& arguments) const override {
        const auto& loop = static_cast<const LoopObject&>(loop_.callable());
        return is_cycle_ ? loop.cycle(arguments) : Value(loop.changed(evaluator, arguments));
    }
    [[nodiscard]] std::string description() const override { return "<bound method of a loop>"; }

private:
    Value loop_;
    bool is_cycle_;
};

}  // namespace

LoopObject::LoopObject(Memory* memory, const syntax::For& loop, ScopePtr around, Items items, int depth)
    : Callable(memory, sizeof(LoopObject), depth_of(items)),
      loop_(loop),
      around_(std::move(around)),
      items_(std::move(items)),
      depth_(depth) {}

void LoopObject::finish() const noexcept {
    is_over_ = true;
    around_.reset();
    last_changed_.reset();
}

Value LoopObject::call(Evaluator& evaluator, Arguments& arguments) const {
    const Bound bound("loop", {"/items"}, arguments);
    if (!loop_.recursive) fail("loop() needs a loop marked 'recursive'");
    if (is_over_) fail("loop() was called after the loop");
    return evaluator.loop_again(loop_, around_, bound.required(0), depth_ + 1);
}

std::optional<Value> LoopObject::attribute(Evaluator& evaluator, std::string_view name) const {
    const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
    const std::size_t size = items_.size();
    if (name == "index") return number(index_ + 1);
    if (name == "index0") return number(index_);
    if (name == "revindex") return number(size - index_);
    if (name == "revindex0") return number(size - index_ - 1);
    if (name == "first") return Value(index_ == 0);
    if (name == "last") return Value(index_ + 1 >= size);
    if (name == "length") return number(size);
    if (name == "depth") return Value(std::int64_t{depth_} + 1);
    if (name == "depth0") return Value(std::int64_t{depth_});
    if (name == "previtem") return index_ == 0 ? evaluator.undefined("there is no previous item") : items_[index_ - 1];
    if (name == "nextitem") return index_ + 1 >= size ? evaluator.undefined("there is no next item") : items_[index_ + 1];
    if (name == "cycle" || name == "changed") return evaluator.callable<LoopMethod>(self(), name == "cycle");
    return std::nullopt;
}

std::string LoopObject::description() const { return fmt::format("<LoopContext {}/{}>", index_ + 1, items_.size()); }

Value LoopObject::cycle(const Arguments& arguments) const {
    if (arguments.positional.empty()) fail("loop.cycle() needs values");
    return arguments.positional[index_ % arguments.positional.size()];
}

bool LoopObject::changed(Evaluator& evaluator, const Arguments& arguments) const {
    const auto same = [&](const Value& a, const Value& b) { return equal(evaluator, a, b); };
    const bool result = !last_changed_ || !std::equal(last_changed_->begin(), last_changed_->end(), arguments.positional.begin(),
                                                      arguments.positional.end(), same);
    if (result && !is_over_) last_changed_ = arguments.positional;
    return result;
}

}  // namespace headroom::text::jinja
