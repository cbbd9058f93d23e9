// A driver library has no code of its own: see CMakeLists.txt.
