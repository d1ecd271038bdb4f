#include "command/exec.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "command/complain.h"
#include "command/running.h"
#include "nowcalls/client.h"

namespace nowcalls::command {
namespace {

constexpr int64_t kKillAfterMs = 10'000;  // SIGTERM.
constexpr Milliseconds kCloseTimeout{2000};

void ComplainOfExec(const Arguments& arguments, const std::string& what) {
  if (!arguments.quiet) Complain(what);
}

// Wakes the main thread, which polls.
class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Bell() {
    if (fd_ >= 0) close(fd_);
  }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  int fd() const { return fd_; }
  void Ring() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
  }
  void Silence() const {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = read(fd_, &count, sizeof(count));
  }

 private:
  const int fd_;
};

// A lost token, told on the client's thread and read on the main one.
class LostToken {
 public:
  int fd() const { return bell_.fd(); }
  void Tell(const Grant& grant, const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      what_ = "lost token " + std::to_string(grant.token.value) + " of flow " +
              std::to_string(grant.flow.value) + ": " +
              (reason.empty() ? "its time was over, or it was taken back" : reason);
    }
    bell_.Ring();
  }
  // Empty: nothing is new.
  std::string Take() {
    bell_.Silence();
    const std::lock_guard lock(mutex_);
    return std::exchange(what_, {});
  }

 private:
  const Bell bell_;
  std::mutex mutex_;
  std::string what_;
};

// The answer to an acquire, put here on the client's thread.
class Answered {
 public:
  int fd() const { return bell_.fd(); }
  void Put(AllAcquired answer) {
    const std::lock_guard lock(mutex_);
    if (unwanted_) return;  // Its permits give the tokens back.
    answer_ = std::move(answer);
    bell_.Ring();
  }
  AllAcquired Take() {
    const std::lock_guard lock(mutex_);
    return std::move(answer_);
  }
  // An answer that is there or comes is given back.
  void Refuse() {
    const std::lock_guard lock(mutex_);
    unwanted_ = true;
    answer_ = AllAcquired();
  }

 private:
  const Bell bell_;
  std::mutex mutex_;
  bool unwanted_ = false;
  AllAcquired answer_;
};

// Exit code of an acquire of exec that was not granted.
int ExitCodeOf(const Arguments& arguments, const Answer& answer) {
  switch (answer.outcome) {
    case Outcome::kRefused:
      if (arguments.refused_code >= 0) return arguments.refused_code;
      return answer.refused_by == RefusedBy::kQueueTimeout ? kExitWaitedInVain : kExitRefused;
    case Outcome::kNoRule: return kExitNoRule;
    case Outcome::kBadRequest: return kExitUsage;
    default: return kExitUnreachable;
  }
}

void AcquireFlows(Client* client, const Arguments& arguments, const AcquireOptions& options,
                  std::function<void(AllAcquired)> done) {
  if (arguments.flows.size() > 1) {
    return client->AcquireAllAsync(arguments.flows, options, std::move(done));
  }
  const FlowDemand& demand = arguments.flows.front();
  AcquireOptions one = options;
  one.count = demand.count;
  one.param = demand.param;
  client->AcquireAsync(demand.flow, one, [done = std::move(done)](Acquired acquired) {
    AllAcquired all;
    const Answer& answer = acquired;
    static_cast<Answer&>(all) = answer;
    if (acquired.ok()) all.permits.push_back(std::move(acquired.permit));
    done(std::move(all));
  });
}

std::string Joined(const std::vector<Permit>& permits, uint64_t (*of)(const Grant&)) {
  std::string text;
  for (const Permit& permit : permits) {
    text += (text.empty() ? "" : ",") + std::to_string(of(permit.grant()));
  }
  return text;
}

// For the command. The client id is not among them: another process under it would keep this
// session online after this one has died.
std::vector<std::pair<std::string, std::string>> VariablesOf(const ClientOptions& client,
                                                             const std::vector<Permit>& permits) {
  std::string servers;
  for (const std::string& address : client.addresses) {
    servers += (servers.empty() ? "" : ",") + address;
  }
  return {
      {"NOWCALLS_SERVER", servers},
      {"NOWCALLS_NAMESPACE", client.name_space},
      {"NOWCALLS_TOKEN_ID", Joined(permits, [](const Grant& g) { return g.token.value; })},
      {"NOWCALLS_FENCE", Joined(permits, [](const Grant& g) { return g.fence.value; })},
      {"NOWCALLS_FLOW_ID",
       Joined(permits, [](const Grant& g) { return static_cast<uint64_t>(g.flow.value); })},
  };
}

// Until the command has ended. Its exit code, or kExitLost if it was stopped for a lost token.
int WaitFor(const Arguments& arguments, Running* running, LostToken* lost) {
  bool stopped = false;
  int64_t kill_at_ms = INT64_MAX;
  for (;;) {
    const int64_t left_ms = std::max<int64_t>(0, kill_at_ms - BoottimeMs());
    const int timeout_ms = kill_at_ms == INT64_MAX ? -1 : static_cast<int>(left_ms);
    if (const auto ended = running->Wait(lost->fd(), timeout_ms)) {
      return stopped ? kExitLost : *ended;
    }
    if (BoottimeMs() >= kill_at_ms) {
      running->Signal(SIGKILL);
      kill_at_ms = INT64_MAX;
    }
    const std::string what = lost->Take();
    if (what.empty()) continue;
    ComplainOfExec(arguments, what);
    if (arguments.on_lost == OnLost::kIgnore || stopped) continue;
    stopped = true;
    const bool at_once = arguments.on_lost == OnLost::kKill;
    running->Signal(at_once ? SIGKILL : SIGTERM);
    if (!at_once) kill_at_ms = BoottimeMs() + kKillAfterMs;
  }
}

int StartFailed(const Arguments& arguments, int error) {
  ComplainOfExec(arguments, "cannot run " + arguments.argv.front() + ": " +
                                std::generic_category().message(error));
  return error == ENOENT ? kExitNotFound : kExitCannotRun;
}

Result<std::unique_ptr<Client>> StartClient(const Arguments& arguments) {
  Result<std::unique_ptr<Client>> client = Client::Start(arguments.client);
  if (!client.ok()) Complain(client.status().message());
  return client;
}

// Of commands for scripts.
int Complained(const Answer& answer) {
  Complain(answer.message);
  switch (answer.outcome) {
    case Outcome::kBadRequest: return kExitUsage;
    case Outcome::kUnavailable:
    case Outcome::kUnknown: return kExitUnavailable;
    default: return kExitFailure;
  }
}

// False: the output cannot be written.
bool TellTokens(const Arguments& arguments, const std::vector<Permit>& permits) {
  for (const Permit& permit : permits) {
    const Grant& grant = permit.grant();
    std::printf(arguments.json
                    ? "{\"token\":\"%llu\",\"flow_id\":%lld,\"fence\":%llu,\"hold_ms\":%lld}\n"
                    : "token %llu, flow %lld, fence %llu, to hold %lld ms\n",
                static_cast<unsigned long long>(grant.token.value),
                static_cast<long long>(grant.flow.value),
                static_cast<unsigned long long>(grant.fence.value),
                static_cast<long long>(grant.hold.count()));
  }
  return std::fflush(stdout) == 0;
}

}  // namespace

int Exec(const Arguments& arguments) {
  Running running;
  LostToken lost;
  Answered answered;
  const auto client = StartClient(arguments);
  if (!client.ok()) return kExitUsage;
  AcquireOptions options = arguments.acquire;
  options.on_lost = [&lost](const Grant& grant, const std::string& reason) {
    lost.Tell(grant, reason);
  };
  AcquireFlows(client->get(), arguments, options,
               [&answered](AllAcquired answer) { answered.Put(std::move(answer)); });
  if (const int signal = running.WaitForEvent(answered.fd()); signal != 0) {
    answered.Refuse();
    (void)(*client)->Close(kCloseTimeout);  // Nothing ran, and the server forgets a silent session.
    if (signal == SIGINT) EndBySigint();
    return 128 + signal;
  }
  AllAcquired acquired = answered.Take();
  const bool unlimited = acquired.outcome == Outcome::kNoRule && !arguments.needs_rule;
  if (!acquired.ok() && !unlimited) {
    ComplainOfExec(arguments, acquired.message);
    return ExitCodeOf(arguments, acquired);
  }
  const int error = running.Start(arguments.argv, VariablesOf(arguments.client, acquired.permits),
                                  arguments.on_lost != OnLost::kIgnore);
  const int code = error != 0 ? StartFailed(arguments, error) : WaitFor(arguments, &running, &lost);
  for (Permit& permit : acquired.permits) permit.ReleaseAsync();
  const Status closed = (*client)->Close(kCloseTimeout);
  if (!closed.ok()) ComplainOfExec(arguments, closed.message());
  if (code == 128 + SIGINT && running.ended_by() == SIGINT) EndBySigint();
  return code;
}

int AcquireForScript(const Arguments& arguments) {
  auto client = StartClient(arguments);
  if (!client.ok()) return kExitUsage;
  AcquireOptions options = arguments.acquire;
  options.keep = KeepMode::kOff;
  std::promise<AllAcquired> answer;
  AcquireFlows(client->get(), arguments, options,
               [&answer](AllAcquired all) { answer.set_value(std::move(all)); });
  const AllAcquired acquired = answer.get_future().get();
  if (!acquired.ok()) return Complained(acquired);
  // Tokens that nobody was told of are given back.
  if (!TellTokens(arguments, acquired.permits)) return kExitIoError;
  client->reset();  // From here on the permits release nothing: the session has the tokens.
  return kExitOk;
}

int ReleaseForScript(const Arguments& arguments) {
  const auto client = StartClient(arguments);
  if (!client.ok()) return kExitUsage;
  Permit permit = (*client)->Adopt(TokenId(arguments.token), FlowId());
  const Released released = permit.Release();
  if (!released.ok()) return Complained(released);
  if (released.lost) {
    Complain(arguments.client.client_id + " holds no such token: it was released or taken back");
    return kExitFailure;
  }
  std::puts("released");
  return kExitOk;
}

int KeepForScript(const Arguments& arguments) {
  auto client = StartClient(arguments);
  if (!client.ok()) return kExitUsage;
  Permit permit = (*client)->Adopt(TokenId(arguments.token), FlowId());
  const Kept kept = permit.Keep();
  client->reset();  // As in AcquireForScript.
  if (!kept.ok()) return Complained(kept);
  std::printf("to hold %lld ms\n", static_cast<long long>(kept.hold.count()));
  return kExitOk;
}

}  // namespace nowcalls::command
