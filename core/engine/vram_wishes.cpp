#include "core/engine/vram_wishes.h"

#include <string>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "core/base/bytes.h"
#include "core/base/paths.h"

namespace headroom::engine {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostFileBytes = MiB;
constexpr std::size_t kMostCards = 64;  // they come and go

json load(const std::filesystem::path& file) {
    std::error_code code;
    if (file.empty() || !std::filesystem::exists(file, code)) return json::object();
    const auto text = read_file(file, kMostFileBytes);
    json cards = text ? json::parse(*text, nullptr, false) : json();
    if (!cards.is_object()) {
        spdlog::warn("{}: what was kept about VRAM cannot be read from it, so the defaults hold", to_utf8(file));
        return json::object();
    }
    return cards;
}

std::optional<std::uint64_t> bytes_of(const json& card, const char* key) {
    const auto at = card.find(key);
    if (at == card.end() || !at->is_number_unsigned()) return std::nullopt;
    return at->get<std::uint64_t>();
}

}  // namespace

VramWishes::VramWishes(const std::filesystem::path& data_folder) {
    if (!data_folder.empty()) file_ = data_folder / "vram.json";
}

VramWish VramWishes::find(std::string_view uuid) const {
    const json cards = load(file_);
    const auto card = cards.find(uuid);
    if (card == cards.end() || !card->is_object()) return {};
    return {.reserve_bytes = bytes_of(*card, "reserve_bytes"), .cap_bytes = bytes_of(*card, "cap_bytes")};
}

Result<> VramWishes::keep(std::string_view uuid, const VramWish& wish) const {
    if (file_.empty()) return {};
    json cards = load(file_);
    const std::string key(uuid);
    json card = json::object();
    if (wish.reserve_bytes) card["reserve_bytes"] = *wish.reserve_bytes;
    if (wish.cap_bytes) card["cap_bytes"] = *wish.cap_bytes;
    if (card.empty()) {
        cards.erase(key);
    } else {
        if (!cards.contains(key) && cards.size() >= kMostCards) cards.erase(cards.begin());
        cards[key] = std::move(card);
    }
    return write_file(file_, cards.dump(1, ' ', false, json::error_handler_t::replace));
}

}  // namespace headroom::engine
