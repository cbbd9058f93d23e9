#include "core/compute/gpu/ops.h"

namespace headroom::kernels {

Result<> argmax_rows(Queue queue, const ArgmaxArguments& arguments) {
    if (arguments.rows < 1 || arguments.n < 1) {
        return fail(ErrorKind::invalid_argument, "the largest of {} values in {} rows is not defined", arguments.n, arguments.rows);
    }
    return queue.kernels.launch(Kernel::argmax_rows, {static_cast<unsigned>(arguments.rows)}, {1024}, 0, queue.stream, arguments);
}

Result<> top_rows(Queue queue, const TopArguments& arguments) {
    if (arguments.rows < 1 || arguments.k < 1 || arguments.k > kMostTop || arguments.k > arguments.n) {
        return fail(ErrorKind::invalid_argument, "the {} largest of {} values in {} rows are not to be had; at most {} are", arguments.k, arguments.n,
                    arguments.rows, kMostTop);
    }
    return queue.kernels.launch(Kernel::top_rows, {static_cast<unsigned>(arguments.rows)}, {1024}, 0, queue.stream, arguments);
}

}  // namespace headroom::kernels
