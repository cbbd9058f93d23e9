#include "core/base/error.h"

namespace headroom {

const char* to_string(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::invalid_argument: return "invalid_argument";
        case ErrorKind::invalid_file: return "invalid_file";
        case ErrorKind::unsupported: return "unsupported";
        case ErrorKind::not_found: return "not_found";
        case ErrorKind::io: return "io";
        case ErrorKind::out_of_memory: return "out_of_memory";
        case ErrorKind::cancelled: return "cancelled";
        case ErrorKind::context_full: return "context_full";
        case ErrorKind::template_failed: return "template_failed";
        case ErrorKind::device: return "device";
        case ErrorKind::internal: return "internal";
    }
    return "internal";
}

}  // namespace headroom
