// nowcalls-admin as a function.
//
// Thread: the program's only one. Owns the standard descriptors.
#ifndef NOWCALLS_ADMIN_MAIN_H_
#define NOWCALLS_ADMIN_MAIN_H_

namespace nowcalls::admin {

// Returns the exit code (base/exit_codes.h).
int Main(int argc, const char* const* argv);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_MAIN_H_
