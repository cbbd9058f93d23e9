// POST /v1/embeddings.

#include <bit>
#include <cstring>

#include "core/base/quote.h"
#include "core/server/openai.h"

namespace headroom::server {
namespace {

constexpr std::size_t kMostInputs = 2048;

// RFC 4648.
std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto byte = [&](std::size_t k) { return i + k < bytes.size() ? static_cast<unsigned>(static_cast<unsigned char>(bytes[i + k])) : 0U; };
        const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : digits[group >> (18 - 6 * k) & 63];
    }
    return out;
}

Json vector_json(const std::vector<float>& vector, bool as_base64) {
    if (!as_base64) return vector;
    static_assert(std::endian::native == std::endian::little);
    return base64({reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
}

}  // namespace

ApiResult<std::vector<std::vector<text::TokenId>>> read_embedding_inputs(const Json& input, const text::Tokenizer& tokenizer) {
    std::vector<std::vector<text::TokenId>> inputs;
    const auto is_id = [](const Json& value) { return value.is_number_integer() && value.get<std::int64_t>() >= 0 && value.get<std::int64_t>() <= INT32_MAX; };
    const auto add = [&](const Json& one, const std::string& at) -> ApiResult<void> {
        if (one.is_string()) {
            if (one.get_ref<const std::string&>().empty()) return refuse(at, "{} is empty", at);
            inputs.push_back(tokenizer.encode(one.get_ref<const std::string&>(), {}));
            return {};
        }
        std::vector<text::TokenId> ids;
        if (one.is_array()) {
            for (const Json& id : one) {
                if (!is_id(id)) return refuse(at, "{} must be a string or an array of token ids", at);
                ids.push_back(static_cast<text::TokenId>(id.get<std::int64_t>()));
            }
        }
        if (ids.empty()) return refuse(at, "{} must be a string or an array of token ids", at);
        inputs.push_back(std::move(ids));
        return {};
    };
    const bool several = input.is_array() && !(input.size() > 0 && is_id(input.front()));
    if (several) {
        if (input.empty()) return refuse("input", "input is empty");
        if (input.size() > kMostInputs) return refuse("input", "input has {} texts, possible are {}", input.size(), kMostInputs);
        for (std::size_t i = 0; i < input.size(); ++i) {
            if (auto added = add(input[i], fmt::format("input[{}]", i)); !added) return std::unexpected(added.error());
        }
    } else if (auto added = add(input, "input"); !added) {
        return std::unexpected(added.error());
    }
    return inputs;
}

ApiResult<HttpResponse> openai_embeddings(Call& call) {
    Fields fields(call.body);
    const Json* input = fields.any("input");
    const std::string format = fields.string("encoding_format").value_or("float");
    const std::string pooling = fields.string("pooling").value_or("");
    const auto dimensions = fields.integer("dimensions", 1, INT32_MAX);
    if (format != "float" && format != "base64") fields.fail("encoding_format", "encoding_format must be \"float\" or \"base64\"");
    if (!pooling.empty() && pooling != "mean" && pooling != "last") fields.fail("pooling", "pooling must be \"mean\" or \"last\"");
    if (input == nullptr) fields.fail("input", "input is missing");
    if (fields.error()) return std::unexpected(*fields.error());
    auto use = call.use_model();
    if (!use) return std::unexpected(use.error());
    auto inputs = read_embedding_inputs(*input, use->model().tokenizer());
    if (!inputs) return std::unexpected(inputs.error());
    Json data = Json::array();
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < inputs->size(); ++i) {
        if (call.gone()) return left_response(call);
        const auto wanted = pooling.empty() ? std::nullopt : std::optional(pooling == "last" ? engine::Pooling::last : engine::Pooling::mean);
        auto vector = use->model().embed((*inputs)[i], wanted);
        if (!vector) return std::unexpected(to_api_error(vector.error()));
        if (dimensions && static_cast<std::size_t>(*dimensions) != vector->size()) {
            return refuse("dimensions", "dimensions is {}, but this model's embeddings have {}", *dimensions, vector->size());
        }
        tokens += (*inputs)[i].size();
        data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", vector_json(*vector, format == "base64")}});
    }
    return json_response({{"object", "list"}, {"data", std::move(data)}, {"model", use->name()}, {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

}  // namespace headroom::server
