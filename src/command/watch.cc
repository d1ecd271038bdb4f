#include "command/watch.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "client/blocking_client.h"
#include "command/complain.h"
#include "command/terminal.h"
#include "command/top_view.h"
#include "nowcalls/flow_name.h"

namespace nowcalls::command {
namespace {

using client::BlockingClient;

constexpr uint32_t kRowsMax = 1000;  // Of flows, a page.
constexpr int kPagesMax = 100;
constexpr size_t kFlowsMax = 10'000;
constexpr uint32_t kDetailRowsMax = 100;  // Of holders, and of waiters.
constexpr size_t kOnceRows = 1000;
constexpr size_t kOnceColumns = 200;

// The first address that answers. Each has its share of the time that is left.
Result<std::unique_ptr<BlockingClient>> Connect(const Arguments& arguments) {
  Status failure;
  const std::vector<std::string>& addresses = arguments.client.addresses;
  const int64_t timeout_ms = arguments.client.timeout.count();
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const int64_t left_ms = std::max<int64_t>(0, deadline_ms - BoottimeMs());
    const int64_t share_ms = left_ms / static_cast<int64_t>(addresses.size() - i);
    auto client =
        BlockingClient::Connect({.address = addresses[i],
                                 .timeout_ms = timeout_ms,
                                 .connect_ms = share_ms,
                                 .security = {arguments.client.tls, arguments.client.secret}});
    if (client.ok()) return client;
    failure = client.status();
  }
  return failure;
}

int ComplainOf(const Status& failure) {
  Complain(failure.message());
  const bool refused = failure.code() == StatusCode::kInvalidArgument ||
                       failure.code() == StatusCode::kPermissionDenied;
  return refused ? kExitFailure : kExitUnavailable;
}

// Milliseconds, over a connection that is made when there is none.
Result<double> RoundTrip(const Arguments& arguments, std::unique_ptr<BlockingClient>* client) {
  if (*client == nullptr) {
    auto connected = Connect(arguments);
    if (!connected.ok()) return connected.status();
    *client = *std::move(connected);
  }
  const int64_t begin_ns = MonotonicNs();
  const Result<uint64_t> pong = (*client)->Ping();
  if (!pong.ok()) {
    client->reset();
    return pong.status();
  }
  return static_cast<double>(MonotonicNs() - begin_ns) / 1e6;
}

// At most kFlowsMax flows. Gives up a server whose pages never end, or come too slowly.
Result<std::vector<wire::FlowRow>> AllFlows(BlockingClient* client, int64_t deadline_ms) {
  std::vector<wire::FlowRow> flows;
  uint64_t cursor = 0;
  for (int pages = 0; pages < kPagesMax && flows.size() < kFlowsMax; ++pages) {
    auto page = client->Flows({.limit = kRowsMax, .cursor = cursor});
    if (!page.ok()) return page.status();
    std::move(page->rows.begin(), page->rows.end(), std::back_inserter(flows));
    cursor = page->next_cursor;
    if (cursor == 0) break;
    if (BoottimeMs() >= deadline_ms) {
      return Status::OutcomeUnknown("the server has not listed its flows in time");
    }
  }
  return flows;
}

Result<TopSnapshot> Look(BlockingClient* client, int64_t chosen, int64_t timeout_ms) {
  // The clock first: ages and deadlines of the rows are on the ledger's clock.
  TopSnapshot snapshot;
  const Result<uint64_t> ledger_ms = client->Ping();
  if (!ledger_ms.ok()) return ledger_ms.status();
  snapshot.ledger_ms = static_cast<int64_t>(*ledger_ms);
  auto flows = AllFlows(client, BoottimeMs() + timeout_ms);
  if (!flows.ok()) return flows.status();
  snapshot.flows = *std::move(flows);
  if (chosen == 0) return snapshot;
  auto tokens = client->Tokens(
      {.flow_id = chosen, .client_id = {}, .min_age_ms = 0, .page = {.limit = kDetailRowsMax}});
  if (!tokens.ok()) return tokens.status();
  snapshot.tokens = std::move(tokens->rows);
  auto waiters = client->Waiters({.flow_id = chosen, .limit = kDetailRowsMax});
  if (!waiters.ok()) return waiters.status();
  snapshot.waiters = *std::move(waiters);
  return snapshot;
}

// Looks again and again, over connections as they come.
class Watch {
 public:
  explicit Watch(const Arguments& arguments) : arguments_(arguments) {
    state_.server = arguments.client.addresses.front();
    if (arguments.flows.empty()) return;
    const FlowId flow = arguments.flows.front().flow;
    name_ = NameOfFlow(flow);
    if (name_.empty()) state_.chosen = flow.value;
  }

  // A failure keeps the old figures and says so in the line of problems.
  Status LookAgain() {
    Status status;
    if (client_ == nullptr) {
      auto client = Connect(arguments_);
      status = client.status();
      if (client.ok()) client_ = *std::move(client);
    }
    if (client_ != nullptr) {
      ChooseNamed();
      Result<TopSnapshot> snapshot =
          Look(client_.get(), state_.chosen, arguments_.client.timeout.count());
      status = snapshot.status();
      if (snapshot.ok()) {
        snapshot_ = *std::move(snapshot);
        rates_.Take(snapshot_);
      } else {
        client_.reset();  // A server that comes back has other connections.
      }
    }
    SortFlows(state_.order, rates_, &snapshot_.flows);
    state_.problem = status.ok() ? "" : "no answer, the figures are old: " + status.message();
    state_.selected =
        std::min(state_.selected, snapshot_.flows.empty() ? 0 : snapshot_.flows.size() - 1);
    return status;
  }

  std::vector<std::string> Lines(size_t rows, size_t columns) const {
    return TopLines(snapshot_, rates_, state_, rows, columns);
  }

  // False: the end.
  bool Press(Key key) {
    switch (key) {
      case Key::kQuit: return false;
      case Key::kUp: state_.selected -= state_.selected > 0 ? 1 : 0; break;
      case Key::kDown:
        state_.selected += state_.selected + 1 < snapshot_.flows.size() ? 1 : 0;
        break;
      case Key::kEnter: Choose(); break;
      case Key::kSort:
        state_.order = static_cast<TopOrder>((static_cast<int>(state_.order) + 1) % 3);
        SortFlows(state_.order, rates_, &snapshot_.flows);
        break;
      case Key::kNone:
      case Key::kResize: break;
    }
    return true;
  }

 private:
  // Once: from then on the number is followed.
  void ChooseNamed() {
    if (name_.empty()) return;
    const Result<wire::FlowRow> flow = client_->Flow({.flow_name = name_});
    if (!flow.ok()) return;  // The listing has the same trouble, or there is no such flow any more.
    state_.chosen = flow->flow_id;
    name_ = {};
  }

  void Choose() {
    if (snapshot_.flows.empty()) return;
    const int64_t flow = snapshot_.flows[state_.selected].flow_id;
    state_.chosen = state_.chosen == flow ? 0 : flow;
    (void)LookAgain();  // The line of problems tells.
  }

  const Arguments arguments_;
  std::unique_ptr<BlockingClient> client_;
  TopSnapshot snapshot_;
  TopRates rates_;
  TopState state_;
  std::string_view name_;  // Of the chosen flow, while its number is not known.
};

int WatchOnTerminal(const Arguments& arguments) {
  Watch watch(arguments);
  Terminal terminal;
  int64_t next_ms = 0;
  for (;;) {
    const int64_t now_ms = BoottimeMs();
    if (now_ms >= next_ms) {
      (void)watch.LookAgain();  // The line of problems tells.
      next_ms = BoottimeMs() + arguments.interval_ms;
    }
    terminal.Show(watch.Lines(terminal.rows(), terminal.columns()));
    const auto left_ms = static_cast<int>(std::max<int64_t>(0, next_ms - BoottimeMs()));
    if (!watch.Press(terminal.Wait(left_ms))) return kExitOk;
  }
}

void PrintFlow(const Arguments& arguments, const wire::FlowRow& flow) {
  const long long id = flow.flow_id;  // NOLINT(google-runtime-int): of printf.
  const std::string level = flow.level ? std::to_string(*flow.level) : "null";
  const auto waiters = static_cast<unsigned long long>(flow.waiters.value_or(0));  // NOLINT
  const auto now_calls = static_cast<unsigned long long>(flow.now_calls);          // NOLINT
  const FlowKind kind = wire::KeyOf(flow).kind;
  if (arguments.json) {
    std::printf(
        "{\"flow_id\":%lld,\"now_calls\":%llu,\"level\":%s,\"waiters\":%llu,"
        "\"kind\":\"%s\"}\n",
        id, now_calls, level.c_str(), waiters, std::string(FlowKindName(kind)).c_str());
  } else {
    std::printf("flow %lld%s (%s): %llu of %s calls in progress, %llu waiting\n", id,
                kind == FlowKind::kValue ? " by value" : "", TerminalText(flow.resource).c_str(),
                now_calls, flow.level ? level.c_str() : "-", waiters);
  }
}

wire::FlowParams ParamsOf(const Arguments& arguments) {
  const FlowId flow = arguments.flows.front().flow;
  return {.flow_id = flow.value, .flow_name = NameOfFlow(flow)};
}

// The server's error if top was asked for an unknown flow; Ok if no server is reached.
Status UnknownFlow(const Arguments& arguments) {
  if (arguments.flows.empty()) return {};
  const auto client = Connect(arguments);
  if (!client.ok()) return {};
  Status status = (*client)->Flow(ParamsOf(arguments)).status();
  return status.code() == StatusCode::kInvalidArgument ? status : Status();
}

}  // namespace

int ShowFlow(const Arguments& arguments) {
  const auto client = Connect(arguments);
  if (!client.ok()) return ComplainOf(client.status());
  const Result<wire::FlowRow> flow = (*client)->Flow(ParamsOf(arguments));
  if (!flow.ok()) return ComplainOf(flow.status());
  PrintFlow(arguments, *flow);
  for (const wire::FlowRow& by_value : flow->by_value) PrintFlow(arguments, by_value);
  return kExitOk;
}

int Ping(const Arguments& arguments) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);  // An interrupted ping sums up.
  const timespec pause{.tv_sec = arguments.interval_ms / 1000,
                       .tv_nsec = arguments.interval_ms % 1000 * 1'000'000};
  std::unique_ptr<BlockingClient> client;
  std::vector<double> times_ms;
  uint64_t asked = 0;
  do {
    if (asked > 0 && sigtimedwait(&ends, nullptr, &pause) > 0) break;
    ++asked;
    const Result<double> time_ms = RoundTrip(arguments, &client);
    if (time_ms.ok()) {
      times_ms.push_back(*time_ms);
      std::printf("answer %llu: %.3f ms\n", static_cast<unsigned long long>(asked),  // NOLINT
                  *time_ms);
    } else {
      const int code = ComplainOf(time_ms.status());
      if (times_ms.empty()) return code;  // It was never there.
    }
    if (std::fflush(stdout) != 0) return kExitIoError;
  } while (arguments.count == 0 || asked < arguments.count);
  const double sum_ms = std::accumulate(times_ms.begin(), times_ms.end(), 0.0);
  std::printf("%zu answers of %llu, min/avg/max %.3f/%.3f/%.3f ms\n", times_ms.size(),
              static_cast<unsigned long long>(asked),  // NOLINT
              *std::min_element(times_ms.begin(), times_ms.end()),
              sum_ms / static_cast<double>(times_ms.size()),
              *std::max_element(times_ms.begin(), times_ms.end()));
  return times_ms.size() == asked ? kExitOk : kExitUnavailable;
}

int Top(const Arguments& arguments) {
  const bool on_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (!arguments.once && !on_terminal) {
    Complain("top needs a terminal; --once prints one frame");
    return kExitUsage;
  }
  if (const Status unknown = UnknownFlow(arguments); !unknown.ok()) return ComplainOf(unknown);
  if (!arguments.once) return WatchOnTerminal(arguments);
  Watch watch(arguments);
  const Status looked = watch.LookAgain();
  if (!looked.ok()) return ComplainOf(looked);
  for (const std::string& line : watch.Lines(kOnceRows, kOnceColumns)) std::puts(line.c_str());
  return kExitOk;
}

}  // namespace nowcalls::command
