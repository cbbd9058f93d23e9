#include "core/compute/gpu/ops.h"

namespace headroom::kernels {

Result<> argmax_rows(Queue queue, const ArgmaxArguments& arguments) {
    if (arguments.rows < 1 || arguments.n < 1) {
        return fail(ErrorKind::invalid_argument, "the largest of {} values in {} rows is not defined", arguments.n, arguments.rows);
    }
    return queue.kernels.launch(Kernel::argmax_rows, {static_cast<unsigned>(arguments.rows)}, {1024}, 0, queue.stream, arguments);
}

}  // namespace headroom::kernels
