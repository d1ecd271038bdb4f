// EngineHarness: an Engine over a FakeDriver and a MemoryStore, one step at a time.
//
// Thread: one at a time. Nothing happens by itself: a test sends bytes, ends turns, begins commits
// and finishes them, or lets Settle do all that a server's loop would.
#ifndef NOWCALLS_SUPPORT_ENGINE_HARNESS_H_
#define NOWCALLS_SUPPORT_ENGINE_HARNESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/access_list.h"
#include "engine/engine.h"
#include "store/memory_store.h"
#include "support/core_harness.h"
#include "support/fake_driver.h"
#include "wire/client_messages.h"

namespace nowcalls::testing {

// Requests as bytes.
std::string HelloRequest(uint32_t msgid, std::string_view name_space,
                         std::optional<std::string_view> client_id);
std::string PlainRequest(uint32_t msgid, wire::Method method);
std::string AcquireRequest(uint32_t msgid, int64_t flow, int64_t count = 1);
std::string TokenRequest(uint32_t msgid, wire::Method method, uint64_t token);
// One request for each id from `first` to `last`: an acquire of one unit of flow 1, a page of
// `tokens` with at most `rows` rows.
std::string AcquireRequests(uint32_t first, uint32_t last);
std::string TokenPageRequests(uint32_t first, uint32_t last, uint32_t rows = 1000);

// first, first + 1, ..., last.
std::vector<uint32_t> Ids(uint32_t first, uint32_t last);

// Who has the certificate `name` and shows `secret`. No namespaces: all.
access::Entry PrincipalEntry(std::string_view name, access::Role role,
                             std::optional<std::vector<std::string>> namespaces = std::nullopt,
                             std::string_view secret = {});

struct EngineReply {
  uint32_t msgid = 0;
  std::optional<wire::RequestError> error;
  std::string result;

  wire::AcquireReply acquire() const;
  TokenStatus status() const;
  wire::KeepReply keep() const;
  wire::HelloReply hello() const;
  uint64_t number() const;
  // "BAD_PARAMS: acquire: count is missing"; "ok" when it is no error.
  std::string ErrorText() const;
};

class EngineHarness {
 public:
  explicit EngineHarness(const Limits& limits = Limits(),
                         const std::vector<RuleOptions>& rules = {{.flow = 1, .count = 1000}});

  engine::Engine& engine() { return *engine_; }
  core::Core& core() { return *core_; }
  FakeDriver& driver() { return driver_; }
  store::MemoryStore& store() { return store_; }
  Instant now() const { return now_; }

  engine::ConnectionId Connect(std::string_view peer = "127.0.0.1:1000");
  engine::ConnectionId Connect(net::Peer peer);
  // With this certificate, from an address of its own: as the principal of this name.
  engine::ConnectionId ConnectAs(std::string_view principal);
  // From now on there are these; before the first call everybody may do everything.
  void SetAccess(std::vector<access::Entry> principals);
  void Disconnect(engine::ConnectionId id);
  void Send(engine::ConnectionId id, std::string_view bytes) { engine_->OnBytes(id, bytes, now_); }
  // Sends, settles, and returns the one reply.
  EngineReply Call(engine::ConnectionId id, std::string_view bytes);
  // A granted acquire of one call.
  uint64_t Take(engine::ConnectionId id, int64_t flow = 1);

  // The end of a loop turn; timers that are due run first.
  void Turn();
  bool BeginCommit();   // True: a batch is with the driver now.
  void FinishCommit();  // It is durable.
  void Settle();        // Turns and commits until nothing waits.
  // Time passes; every 50 ms of it a loop turn, with sweeps.
  void Pass(int64_t duration_ms);
  void Sleep(int64_t duration_ms) { now_ = now_ + duration_ms; }

  // What has been written to the connection since the last call, taken apart.
  std::vector<EngineReply> TakeReplies(engine::ConnectionId id);
  // The ids of the same, in order of arrival.
  std::vector<uint32_t> TakeIds(engine::ConnectionId id);

  void Restart();

 private:
  void StartEngine();

  Limits limits_;
  core::CoreOptions core_options_;
  FakeDriver driver_;
  store::MemoryStore store_;
  Instant now_{CoreHarness::kStartMs};
  int ports_ = 0;  // Of ConnectAs.
  std::unique_ptr<core::Core> core_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_ENGINE_HARNESS_H_
