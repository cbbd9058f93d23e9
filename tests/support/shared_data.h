#pragma once

// Where tests find data that is not part of the project: third-party vocabularies, templates and reference values in a folder
// `shared` beside the checkout. A test whose data is absent skips with a reason (QSKIP(missing_shared(…))).

#include <filesystem>
#include <string>

namespace headroom::test {

// shared/<part>, or an empty path where it is not there.
[[nodiscard]] std::filesystem::path shared_data(const std::string& part);
// The sentence for QSKIP.
[[nodiscard]] const char* missing_shared(const std::string& part);
// A file of this tree, as an absolute path: source_file("resources/model/…").
[[nodiscard]] std::filesystem::path source_file(const std::string& part);

}  // namespace headroom::test
