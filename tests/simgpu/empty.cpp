// A driver library has no code of its own: see CMakeLists.txt.

#ifdef _WIN32
// Windows looks for the library that functions are forwarded to only when one of them is asked for, and then among the program's
// folders. A function that is used brings it in with the driver, from the driver's own folder. Nobody calls this one.
extern "C" __declspec(dllimport) const char* sim_trace(decltype(sizeof 0) i);
extern "C" __declspec(dllexport) const char* simgpu_is_loaded() { return sim_trace(0); }
#endif
