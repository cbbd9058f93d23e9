#include "core/gguf/parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/paths.h"
#include "core/base/quote.h"
#include "core/gguf/split.h"

namespace headroom::gguf {
namespace {

struct OpenedPart {
    MappedFile file;
    Part part;
    SplitInfo split;
};

Result<OpenedPart> open_part(const std::filesystem::path& path, std::uint16_t shard) {
    const std::string name = printable(to_utf8(path));
    HR_TRY(auto file, MappedFile::open(path));
    HR_TRY(auto part, read_part(file.bytes(), name, shard));
    HR_TRY(const auto split, read_split_info(part.metadata, name));
    return OpenedPart{std::move(file), std::move(part), split};
}

// Part `number` (from 0) of a split model of `count` files, proven to be that.
Result<OpenedPart> open_numbered_part(const std::filesystem::path& path, std::uint32_t number, std::uint32_t count) {
    auto opened = open_part(path, static_cast<std::uint16_t>(number));
    if (!opened) {
        Error error = std::move(opened).error();
        if (error.kind == ErrorKind::not_found) {
            error.message += fmt::format(" (the model has {} files, all of which must be in one folder)", count);
        }
        return std::unexpected(std::move(error));
    }
    if (opened->split.count != count || opened->split.number != number) {
        return fail(ErrorKind::invalid_file, "{}: its metadata say that it is part {} of {}, its name says part {} of {}",
                    printable(to_utf8(path)), opened->split.number + 1, opened->split.count, number + 1, count);
    }
    return opened;
}

}  // namespace

Result<Parts> open_parts(const std::filesystem::path& path) {
    const std::string name = printable(to_utf8(path));
    HR_TRY(auto given, open_part(path, 0));
    const SplitInfo split = given.split;
    Parts result;
    std::uint64_t tensors = 0;
    const auto append = [&](OpenedPart opened) {
        tensors += opened.part.tensors.size();
        result.files.push_back(std::move(opened.file));
        result.parts.push_back(std::move(opened.part));
    };
    if (split.count == 1) {
        append(std::move(given));
    } else {
        const auto from_name = parse_split_name(to_utf8(path.filename()));
        if (!from_name || from_name->count != split.count || from_name->number != split.number + 1) {
            return fail(ErrorKind::invalid_file,
                        "{}: is part {} of {} of a split model, so its name must end with \"{}\"; give the files their original names",
                        name, split.number + 1, split.count, split_name("", split.number + 1, split.count));
        }
        for (std::uint32_t i = 0; i < split.count; ++i) {
            const auto part_path = path.parent_path() / from_utf8(split_name(from_name->prefix, i + 1, split.count));
            HR_TRY(auto opened, open_numbered_part(part_path, i, split.count));
            if (opened.split.tensors != split.tensors) {
                return fail(ErrorKind::invalid_file,
                            "{}: metadata \"split.tensors.count\" differs from that of {}: they are parts of different models",
                            printable(to_utf8(part_path)), name);
            }
            append(std::move(opened));
        }
    }
    if (split.tensors && *split.tensors != tensors) {
        return fail(ErrorKind::invalid_file, "{}: metadata \"split.tensors.count\" is {}, but there are {} tensors", name, *split.tensors,
                    tensors);
    }
    return result;
}

}  // namespace headroom::gguf
