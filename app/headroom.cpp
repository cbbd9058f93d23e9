#include "ui/program/run_window.h"

int main(int argc, char** argv) { return headroom::ui::run_window(argc, argv); }
