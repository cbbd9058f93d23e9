#include "core/model/family.h"

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "core/base/quote.h"
#include "core/model/families/families.h"

namespace headroom::model {
namespace {

constexpr std::array kFamilies{kLlama, kQwen2, kQwen3, kQwen3Moe};

std::string names() {
    std::string text;
    for (const Family& family : kFamilies) text.append(text.empty() ? "" : ", ").append(family.name);
    return text;
}

}  // namespace

std::span<const Family> families() noexcept { return kFamilies; }

Result<Transformer> bind_transformer(const gguf::File& file) try {
    HR_TRY(const auto name, file.get_string("general.architecture"));
    if (!name) return fail(ErrorKind::invalid_file, "{}: the metadata has no \"general.architecture\": is it a model?", file.name());
    const auto* const family = std::ranges::find(kFamilies, *name, &Family::name);
    if (family == kFamilies.end()) {
        return fail(ErrorKind::unsupported, "{}: models of the family {} are not supported; supported are {}", file.name(), quote(*name),
                    names());
    }
    HR_TRY(Hyperparameters hyperparameters, read_hyperparameters(file));
    return family->bind(file, std::move(hyperparameters));
} catch (const std::bad_alloc&) {
    return fail(ErrorKind::out_of_memory, "{}: there is not enough memory to open it", file.name());
}

}  // namespace headroom::model
