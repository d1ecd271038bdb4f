// The program nowcalls-server.
#ifndef NOWCALLS_SERVER_MAIN_H_
#define NOWCALLS_SERVER_MAIN_H_

namespace nowcalls::server {

// Reads the configuration, does what it asks for and returns the exit code (base/exit_codes.h).
int Main(int argc, const char* const* argv);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_MAIN_H_
