// The command line of nowcalls-admin as a struct.
//
// Thread: any.
#ifndef NOWCALLS_ADMIN_ARGUMENTS_H_
#define NOWCALLS_ADMIN_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "access/access_edit.h"
#include "admin/row_writer.h"
#include "admin/source.h"
#include "client/security_settings.h"

namespace nowcalls::admin {

enum class Command {
  kDump,
  kStat,
  kFlow,
  kParams,
  kWaiters,
  kTokens,
  kSessions,
  kVerify,
  kRulesList,
  kRulesLoad,
  kRulesCheck,
  kReclaim,
  kReclaimClient,
  kReclaimFlow,
  kReclaimNamespace,
  kPurge,
  kDrain,
  kDrainNamespace,
  kHistory,
  kRulesDiff,
  kRulesSources,
  kInfo,
  kPing,
  kRepair,
  kBackup,
  kRestore,
  kAccessAdd,
  kAccessRotate,
  kAccessList,
  kAccessCheck,
  kAccessTest,
  kCluster,
  kHandover,
};

inline constexpr char kDefaultServer[] = "127.0.0.1:18730";
// Defaults for --server and --format.
inline constexpr char kServerVariable[] = "NOWCALLS_SERVER";
inline constexpr char kFormatVariable[] = "NOWCALLS_FORMAT";

struct Arguments {
  Command command = Command::kDump;

  // One of both, or none for commands without a source.
  std::string data_dir;
  std::string server;  // What the environment says, or kDefaultServer, unless told otherwise.
  client::Security security;  // Of the connection to it.
  int64_t timeout_ms = 5000;  // An hour for a backup, half a minute for a handover.

  std::optional<Format> format;  // Absent: a table on a terminal, jsonl otherwise.
  bool wide = false;             // Tables show every column, and text in full.
  bool busy = false;             // Of stat: only flows with tokens or waiters.
  bool by_minute = false;        // Of params: Source::Params.
  std::optional<bool> online;    // Of sessions.
  // name_space: also of stat, sessions, rules list and sources; client_id: of sessions.
  RowFilter filter;
  HistoryFilter history_filter;
  size_t limit = 100;
  int64_t flow_id = 0;
  // Instead of a flow id, here and in the filters; see ResolveFlow.
  std::string flow_name;
  std::optional<FlowKind> kind;  // Of flow, waiters, reclaim --flow, purge and drain.
  uint64_t token_id = 0;
  std::string reason;
  std::string name_space;            // Of rules load, rules diff and reclaim --client.
  std::string client_id;             // Of reclaim --client.
  std::optional<uint64_t> instance;  // Likewise; none: all of the client id.
  bool yes = false;                  // Confirmed.
  bool off = false;                  // Of drain.
  bool strict = false;               // Of rules check: a warning is an error.
  bool no_secret = false;            // Of access add.
  std::string file;                  // Of rules and access.
  access::NewPrincipal principal;    // Of access add; of rotate its name.
  std::string to;                    // Of backup and repair.
  std::string from;                  // Of restore, whose data_dir is the new one.
  std::string owner;                 // Of restore and repair; empty: this user.
  uint64_t problems_max = 100;
};

struct ParsedArguments {
  std::optional<Arguments> arguments;  // Absent: print `out` and `err` and exit.
  int exit_code = 0;
  std::string out;  // Help or version.
  std::string err;  // What is wrong with the command line.
};

// Empty when not set.
struct Environment {
  std::string_view server;
  std::string_view format;
  client::SecuritySettings security{};
};

ParsedArguments ParseArguments(int argc, const char* const* argv,
                               const Environment& environment = {});

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ARGUMENTS_H_
