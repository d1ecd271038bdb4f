// The command line of `nowcalls` as a struct.
//
// Thread: any.
#ifndef NOWCALLS_COMMAND_ARGUMENTS_H_
#define NOWCALLS_COMMAND_ARGUMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/security_settings.h"
#include "nowcalls/client.h"

namespace nowcalls::command {

enum class Command : uint8_t { kExec, kAcquire, kRelease, kKeep, kFlow, kPing, kTop };

// The command's end on a lost token.
enum class OnLost : uint8_t { kIgnore, kTerm, kKill };

// Exit codes of exec.
inline constexpr int kExitRefused = 120;
inline constexpr int kExitWaitedInVain = 121;
inline constexpr int kExitUnreachable = 122;
inline constexpr int kExitNoRule = 123;
inline constexpr int kExitLost = 124;
inline constexpr int kExitDenied = 125;
inline constexpr int kExitCannotRun = 126;
inline constexpr int kExitNotFound = 127;

// Defaults of the command line.
struct Environment {
  std::string server;      // NOWCALLS_SERVER
  std::string name_space;  // NOWCALLS_NAMESPACE
  std::string client_id;   // NOWCALLS_CLIENT_ID
  client::SecuritySettings security{};
};

struct Arguments {
  Command command = Command::kExec;
  ClientOptions client{};  // Addresses, namespace, client id, timeout, fallback, TLS, secret.

  std::vector<FlowDemand> flows{};  // exec, acquire: at least one. flow, top: the one.
  AcquireOptions acquire{};
  OnLost on_lost = OnLost::kIgnore;
  bool signals_to_all = false;  // Of exec: not to the command alone.
  bool needs_rule = true;       // A flow without a rule is a refusal.
  int refused_code = -1;  // Exit code instead of kExitRefused and kExitWaitedInVain; -1: none.
  bool quiet = false;
  std::vector<std::string> argv{};  // Of the command.

  uint64_t token = 0;  // release, keep

  bool json = false;
  int64_t interval_ms = 1000;  // ping, top
  uint64_t count = 0;          // Of pings; 0: until interrupted.
  bool once = false;           // top prints one frame.
};

struct ParsedArguments {
  Arguments arguments{};
  // Only print `out` and `err`, and exit.
  bool ends = false;
  int exit_code = 0;
  std::string out{};
  std::string err{};
};

ParsedArguments ParseArguments(int argc, const char* const* argv, const Environment& environment);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_ARGUMENTS_H_
