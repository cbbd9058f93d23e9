#pragma once

// What the user wants of each card, kept across restarts: a JSON file, by the card's UUID.

#include <filesystem>
#include <string_view>

#include "core/base/error.h"
#include "core/engine/vram.h"

namespace headroom::engine {

// Objects are cheap; each call reads or writes the file, and writing replaces it whole.
class VramWishes {
public:
    // data_folder: the file is vram.json there; empty: nothing is kept and nothing found.
    explicit VramWishes(const std::filesystem::path& data_folder);

    // What was kept for this card; nothing in it where there is nothing, or the file cannot be read (the log says so).
    [[nodiscard]] VramWish find(std::string_view uuid) const;
    // Errors: io.
    [[nodiscard]] Result<> keep(std::string_view uuid, const VramWish& wish) const;

private:
    std::filesystem::path file_;  // empty: none
};

}  // namespace headroom::engine
