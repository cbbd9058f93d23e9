#include "ui/controller/server_backend.h"

#include <utility>

namespace headroom::ui {

Result<std::string> EngineServerBackend::start(const ServerSetup& setup) {
    server_.reset();
    server::ServerOptions options{.port = setup.port, .api_key = setup.key, .origins = setup.origins, .version = version_};
    options.models.first_name = setup.model_name;
    options.models.first_path = setup.model_path;
    options.models.first_model = setup.model;
    options.models.load.data_folder = data_folder_;
    HR_TRY(server_, server::Server::start(std::move(options)));
    return server_->address();
}

void EngineServerBackend::cancel(std::uint64_t request) {
    if (server_) server_->cancel(request);
}

}  // namespace headroom::ui
