#include "tests/kernels/code_objects.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace headroom::test {
namespace {

using Bytes = std::span<const unsigned char>;

template <class T>
T at(Bytes bytes, std::size_t offset) {
    T value{};
    if (offset <= bytes.size() && bytes.size() - offset >= sizeof value) std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}
Bytes part(Bytes bytes, std::size_t offset, std::size_t size) {
    if (offset > bytes.size()) return {};
    return bytes.subspan(offset, std::min(size, bytes.size() - offset));
}
std::string_view text(Bytes bytes, std::size_t offset) {
    const Bytes rest = part(bytes, offset, bytes.size());
    const auto* chars = reinterpret_cast<const char*>(rest.data());
    return {chars, ::strnlen(chars, rest.size())};
}
std::size_t round_4(std::size_t n) { return (n + 3) & ~std::size_t{3}; }

struct Section {
    std::string_view name;
    std::uint32_t type, link;
    Bytes bytes;
    std::size_t size;  // more than bytes where the file holds none (.nv.shared)
};
constexpr std::uint32_t no_bits = 8, note = 7;

std::vector<Section> sections(Bytes elf) {
    const auto table = at<std::uint64_t>(elf, 0x28);
    const auto step = at<std::uint16_t>(elf, 0x3a), count = at<std::uint16_t>(elf, 0x3c), names = at<std::uint16_t>(elf, 0x3e);
    const auto contents = [&](std::size_t i) {
        const std::size_t header = table + i * step;
        return part(elf, at<std::uint64_t>(elf, header + 0x18), at<std::uint64_t>(elf, header + 0x20));
    };
    std::vector<Section> all;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t header = table + i * step;
        Section section{text(contents(names), at<std::uint32_t>(elf, header)), at<std::uint32_t>(elf, header + 4), at<std::uint32_t>(elf, header + 0x28),
                        contents(i), at<std::uint64_t>(elf, header + 0x20)};
        if (section.type == no_bits) section.bytes = {};
        all.push_back(section);
    }
    return all;
}

// What a fatbin holds: kind 1 is PTX, 2 a cubin.
template <class Visit>
void for_each_entry(Bytes fatbin, Visit visit) {
    for (std::size_t offset = at<std::uint16_t>(fatbin, 6); offset + 32 < fatbin.size();) {
        const auto header = at<std::uint32_t>(fatbin, offset + 4);
        const auto size = at<std::uint64_t>(fatbin, offset + 8);
        visit(at<std::uint16_t>(fatbin, offset), at<std::uint32_t>(fatbin, offset + 0x1c), part(fatbin, offset + header, size));
        if (header + size == 0) return;
        offset += header + size;
    }
}

// The attributes of a .nv.info section: visit(attribute, bytes).
template <class Visit>
void for_each_attribute(Bytes info, Visit visit) {
    constexpr unsigned char with_size = 4;
    for (std::size_t offset = 0; offset + 4 <= info.size();) {
        const auto value = at<std::uint16_t>(info, offset + 2);
        if (info[offset] == with_size) {
            visit(info[offset + 1], part(info, offset + 4, value));
            offset += 4U + value;
        } else {
            visit(info[offset + 1], part(info, offset + 2, 2));
            offset += 4;
        }
    }
}

}  // namespace

std::vector<CompiledKernel> read_code_object(Bytes image) {
    std::vector<CompiledKernel> kernels;
    for (const Section& section : sections(image)) {
        if (section.type != note) continue;
        const auto name = at<std::uint32_t>(section.bytes, 0), size = at<std::uint32_t>(section.bytes, 4), type = at<std::uint32_t>(section.bytes, 8);
        constexpr std::uint32_t metadata = 32;
        if (type != metadata || text(section.bytes, 12) != "AMDGPU") continue;
        const Bytes packed = part(section.bytes, 12 + round_4(name), size);
        const auto root = nlohmann::json::from_msgpack(packed.begin(), packed.end(), true, false);
        if (!root.is_object()) continue;
        const std::string target = root.value("amdhsa.target", "");
        for (const auto& from : root.value("amdhsa.kernels", nlohmann::json::array())) {
            CompiledKernel kernel;
            kernel.target = target.substr(target.rfind('-') + 1);
            kernel.name = from.value(".name", "");
            for (const auto& argument : from.value(".args", nlohmann::json::array())) {
                if (!argument.value(".value_kind", "").starts_with("hidden_")) kernel.argument_bytes += argument.value(".size", std::size_t{0});
            }
            kernel.private_bytes = from.value(".private_segment_fixed_size", std::size_t{0}) + (from.value(".uses_dynamic_stack", false) ? 1 : 0);
            kernel.spills = from.value(".vgpr_spill_count", std::size_t{0});
            kernel.scalar_spills = from.value(".sgpr_spill_count", std::size_t{0});
            kernel.shared_bytes = from.value(".group_segment_fixed_size", std::size_t{0});
            kernel.registers = from.value(".vgpr_count", std::size_t{0});
            kernels.push_back(kernel);
        }
    }
    return kernels;
}

std::vector<CompiledKernel> read_fatbin(Bytes image) {
    constexpr unsigned char frame_size = 0x11, parameter_bytes = 0x19, register_count = 0x2f;
    std::vector<CompiledKernel> kernels;
    for_each_entry(image, [&](unsigned kind, std::uint32_t architecture, Bytes cubin) {
        if (kind != 2) return;
        std::map<std::string, CompiledKernel, std::less<>> found;
        const auto all = sections(cubin);
        const auto named = [&](std::string_view name) -> CompiledKernel& { return found[std::string(name)]; };
        Bytes symbols, names;
        for (const Section& section : all) {
            if (section.name == ".symtab") {
                symbols = section.bytes;
                if (section.link < all.size()) names = all[section.link].bytes;
            }
        }
        for (const Section& section : all) {
            constexpr std::string_view code = ".text.", info = ".nv.info.", shared = ".nv.shared.";
            if (section.name.starts_with(code)) named(section.name.substr(code.size()));
            if (section.name.starts_with(info)) {
                for_each_attribute(section.bytes, [&](unsigned char attribute, Bytes value) {
                    if (attribute == parameter_bytes) named(section.name.substr(info.size())).argument_bytes = at<std::uint16_t>(value, 0);
                });
            }
            if (section.name.starts_with(shared)) named(section.name.substr(shared.size())).shared_bytes = section.size;
            if (section.name == ".nv.info") {
                for_each_attribute(section.bytes, [&](unsigned char attribute, Bytes value) {
                    if (attribute != frame_size && attribute != register_count) return;
                    constexpr std::size_t symbol_bytes = 24;
                    const auto name = text(names, at<std::uint32_t>(symbols, at<std::uint32_t>(value, 0) * symbol_bytes));
                    (attribute == frame_size ? named(name).private_bytes : named(name).registers) = at<std::uint32_t>(value, 4);
                });
            }
        }
        for (auto& [name, kernel] : found) {
            if (!name.starts_with("headroom_")) continue;  // functions that kernels call
            kernel.name = name;
            kernel.target = fmt::format("sm_{}", architecture);
            kernels.push_back(kernel);
        }
    });
    return kernels;
}

std::vector<std::string> ptx_architectures(Bytes image) {
    std::vector<std::string> all;
    for_each_entry(image, [&](unsigned kind, std::uint32_t architecture, Bytes) {
        if (kind == 1) all.push_back(std::to_string(architecture));
    });
    return all;
}

}  // namespace headroom::test
