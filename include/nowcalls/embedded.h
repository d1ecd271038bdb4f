// Embedded: the TokenService within the process: the server's core and ledger without a socket.
//
//   auto tokens = nowcalls::Embedded::Open({.data_dir = "/var/lib/gate"});
//   (*tokens)->LoadRules("shop", rules_json);
//   nowcalls::Acquired acquired = (*tokens)->Acquire(nowcalls::FlowId(1001));
//
// Tokens are in the ledger of the data directory, which no other process may have open, and outlive
// a restart of the program. nowcalls-server and nowcalls-admin read the same ledger.
//
// Thread: any, for all members; one background thread for each service decides, commits and runs
// callbacks.
#ifndef NOWCALLS_EMBEDDED_H_
#define NOWCALLS_EMBEDDED_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/client.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls {

struct EmbeddedOptions {
  // Where the ledger is; made if it does not exist. Empty: in memory alone, for tests.
  std::string data_dir{};
  std::string name_space = "default";
  // Names the session, whose tokens the next process with this name finds again.
  std::string client_id = "embedded";
  // Whether a grant is on the disk before it is told. Otherwise it is with the operating system,
  // and survives the end of the process.
  bool sync = true;
  Milliseconds timeout{5000};  // Of calls that name none.
  std::function<void(LogLevel level, std::string_view line)> log{};
};

class Embedded final : public TokenService {
 public:
  // Opens the ledger and recovers it. Errors as nowcalls-server has them: kCorruption: damaged;
  // kAlreadyExists: another process has it.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);
  // Commits what was asked, and closes the ledger.
  ~Embedded() override;

  // Replaces all rules of the namespace, or none: JSON text as of rules_load. Returns how many are
  // in force. kInvalidArgument names rule and field.
  Result<uint64_t> LoadRules(std::string_view name_space, std::string_view json);

  void AcquireAsync(FlowId flow, const AcquireOptions& options,
                    std::function<void(Acquired)> done) override;
  void AcquireAllAsync(const std::vector<FlowDemand>& demands, const AcquireOptions& options,
                       std::function<void(AllAcquired)> done) override;
  void RequestAsync(FlowId flow, const RequestOptions& options,
                    std::function<void(Passed)> done) override;
  void RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                         const RequestOptions& options, std::function<void(Passed)> done) override;
  bool OnOwnThread() const override;

 private:
  class Impl;
  explicit Embedded(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_EMBEDDED_H_
