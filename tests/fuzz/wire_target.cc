// Bytes of clients through the splitter, the decoders, the engine and the core, onto a store in
// memory.
//
// The input is a script. Each step is a byte, of which the low three bits say what happens and the
// others to which of four connections, and what it needs behind it:
//
//   0, 1, 2   a length (one byte) and so many bytes, which the connection sends
//   3         a turn of the loop
//   4         a commit begins or ends
//   5         one byte: time passes, up to half a minute
//   6         the connection goes and another comes; or it says that it sends no more
//   7         all comes to rest; or the server is killed and started again
//
// Every reply must be a message, what the core counts must add up, and what is committed must be
// what a restart finds.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

#include "fuzz/targets.h"
#include "support/engine_harness.h"

namespace nowcalls::fuzz {
namespace {

using testing::EngineHarness;

constexpr size_t kConnections = 4;

Limits SmallLimits() {
  Limits limits;
  limits.connections_max = kConnections + 1;
  limits.sessions_max = 6;
  limits.rules_max = 8;
  limits.namespaces_max = 4;
  limits.tokens_max = 12;
  limits.waiters_per_rule_max = 4;
  limits.waiters_max = 6;
  limits.waiters_per_connection_max = 4;
  limits.cancels_max = 6;
  limits.cancels_per_session_max = 4;
  limits.listings_max = 3;
  limits.listings_per_connection_max = 2;
  limits.history_max = 5;
  limits.input_total_bytes_max = 4096;
  limits.batch_bytes_max = 2048;
  return limits;
}

class Script {
 public:
  explicit Script(std::string_view input)
      : input_(input),
        h_(SmallLimits(), {{.flow = 1, .count = 3, .refuse_strategy = 3},
                           {.flow = 111, .count = 4, .max_per_client = 2}}) {
    for (auto& id : connections_) id = h_.Connect();
  }

  void Run() {
    while (!input_.empty()) {
      Step(static_cast<uint8_t>(Take()));
      ReplaceClosed();
    }
    Rest();
    if (h_.core().tokens().size() > 0) Restart();
  }

 private:
  char Take() {
    if (input_.empty()) return 0;
    const char byte = input_.front();
    input_.remove_prefix(1);
    return byte;
  }

  void Step(uint8_t step) {
    engine::ConnectionId& id = connections_[(step >> 3) % kConnections];
    const bool other = step >= 128;
    switch (step % 8) {
      case 3: return h_.Turn();
      case 4: return Commit();
      case 5: return Pass(static_cast<uint8_t>(Take()));
      case 6:
        if (other) return h_.engine().OnEndOfInput(id, h_.now());
        return Replace(&id);
      case 7:
        Rest();
        if (other) Restart();
        return;
      default: return Send(id);
    }
  }

  void Send(engine::ConnectionId id) {
    const auto wanted = static_cast<uint8_t>(Take());
    const size_t size = std::min<size_t>(wanted, input_.size());
    h_.Send(id, input_.substr(0, size));
    input_.remove_prefix(size);
  }

  // In steps of a loop, or at once, as for a server that was stopped.
  void Pass(uint8_t time) {
    if (time < 16) return h_.Pass(time * 60);
    h_.Sleep(time * 120);
    h_.Settle();
  }

  void Commit() {
    if (!h_.BeginCommit() && !h_.driver().commits.empty()) h_.FinishCommit();
  }

  void Replace(engine::ConnectionId* id) {
    static_cast<void>(h_.TakeReplies(*id));
    h_.Disconnect(*id);
    *id = h_.Connect();
  }

  void ReplaceClosed() {
    for (engine::ConnectionId& id : connections_) {
      if (h_.driver().socket(id).closed) Replace(&id);
    }
    // One that nobody would ever end.
    h_.driver().backup.reset();
  }

  void Rest() {
    h_.Settle();
    ReplaceClosed();
    h_.Settle();
    REQUIRE(testing::FindWrongBook(h_.core()) == "");
    for (const engine::ConnectionId id : connections_) static_cast<void>(h_.TakeReplies(id));
  }

  // REQUIRES: everything is at rest.
  void Restart() {
    const std::string before = testing::TokensText(h_.core());
    h_.Restart();
    for (auto& id : connections_) id = h_.Connect();
    REQUIRE(testing::TokensText(h_.core()) == before);
    REQUIRE(testing::TokensText(testing::ReadLedger(&h_.store())) == before);
    REQUIRE(testing::FindWrongBook(h_.core()) == "");
  }

  std::string_view input_;
  EngineHarness h_;
  std::array<engine::ConnectionId, kConnections> connections_{};
};

}  // namespace

void FuzzWire(std::string_view input) {
  // Longer scripts find nothing that shorter ones do not, later.
  constexpr size_t kBytesMax = 8192;
  Script(input.substr(0, kBytesMax)).Run();
}

}  // namespace nowcalls::fuzz
