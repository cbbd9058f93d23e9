// GET /v1/models and /v1/models/{name}.

#include <algorithm>

#include "core/base/quote.h"
#include "core/server/call.h"

namespace headroom::server {

ApiResult<HttpResponse> openai_models(Call& call) {
    constexpr std::string_view kPath = "/v1/models";
    const auto names = call.backend.host.names();
    const auto entry = [&](const std::string& name) {
        return Json{{"id", name}, {"object", "model"}, {"created", unix_seconds(call.backend.started)}, {"owned_by", "local"}};
    };
    if (call.request.path.size() > kPath.size() + 1) {
        const std::string wanted = call.request.path.substr(kPath.size() + 1);
        if (std::ranges::find(names, wanted) == names.end()) {
            return std::unexpected(ApiError{.status = 404, .message = fmt::format("There is no model {}", quote(wanted)), .code = "model_not_found", .param = "model"});
        }
        return json_response(entry(wanted));
    }
    Json list = Json::array();
    for (const std::string& name : names) list.push_back(entry(name));
    return json_response({{"object", "list"}, {"data", std::move(list)}});
}

}  // namespace headroom::server
