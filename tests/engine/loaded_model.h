#pragma once

// A synthetic model written to a temporary folder and loaded through the facade.

#include <QTemporaryDir>

#include "core/base/paths.h"
#include "core/engine/engine.h"
#include "tests/model/model_runner.h"
#include "tests/model/synthetic_model.h"

namespace headroom::test {

class LoadedModel {
public:
    explicit LoadedModel(const SyntheticModel& synthetic, int context = 0) {
        must(synthetic_writer(synthetic).write(path()));
        model_ = must(engine::Model::load({.path = path(), .context = context, .threads = 2}));
    }
    [[nodiscard]] std::filesystem::path path() const { return from_utf8(folder_.filePath("synthetic.gguf").toStdString()); }
    [[nodiscard]] const std::shared_ptr<engine::Model>& get() const noexcept { return model_; }
    [[nodiscard]] std::unique_ptr<engine::Session> new_session() const { return must(engine::Session::create(model_)); }

private:
    QTemporaryDir folder_;
    std::shared_ptr<engine::Model> model_;
};

}  // namespace headroom::test
