#include "cli/run.h"
#include "cli/terminal.h"

int main(int argc, char** argv) { return headroom::cli::run(headroom::cli::utf8_arguments(argc, argv)); }
