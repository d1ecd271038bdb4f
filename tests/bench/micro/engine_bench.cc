// The whole engine: bytes in, batches and bytes out. All that the loop thread does for a request
// but the sockets.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "bench/micro/items.h"
#include "bench/micro/loaded_core.h"
#include "core/books.h"
#include "core/tables/token_ids.h"
#include "engine/engine.h"
#include "wire/client_messages.h"

namespace nowcalls::microbench {
namespace {

constexpr uint64_t kFirstRequestId = 1'000'000'007;

// Sockets that take everything.
class CountingDriver : public engine::Driver {
 public:
  void Write(std::span<engine::Output> outputs) override {
    for (const engine::Output& output : outputs) bytes_ += output.bytes.size();
  }
  void Close(engine::ConnectionId /*id*/, bool /*flush*/) override { NOWCALLS_CHECK(false); }
  void SetReading(engine::ConnectionId /*id*/, bool on) override { NOWCALLS_CHECK(on); }
  Status BeginBackup(const engine::BackupJob& /*job*/) override {
    return Status::ResourceExhausted("none here");
  }
  void Log(engine::Severity severity, LogTopic /*topic*/, std::string_view /*message*/,
           const LogFields& /*fields*/) override {
    NOWCALLS_CHECK(severity <= engine::Severity::kInfo);
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// Clients that keep `live` tokens, and in each turn release their oldest and acquire as many, each
// with a request id.
class LoadedEngine {
 public:
  // Divisible by one another: `live` by `connections`, and what each holds by `pairs`.
  LoadedEngine(uint32_t connections, uint32_t pairs, uint32_t live, uint32_t flows)
      : pairs_(pairs), flows_(flows), core_(BenchOptions()), ids_(BenchOptions().token_id_key) {
    NOWCALLS_CHECK(core_.FinishLoad(std::nullopt).ok());
    core_.Begin(now_);
    engine_ = std::make_unique<engine::Engine>(engine::EngineOptions(), &core_, &driver_, now_);
    NOWCALLS_CHECK(engine_->LoadRules({BenchRules(flows)}, now_).ok());
    Commit();
    for (uint32_t i = 0; i < connections; ++i) {
      clients_.emplace_back();
      clients_.back().id = *engine_->OnConnect({.name = "127.0.0.1:" + std::to_string(i)}, now_);
      clients_.back().fences.resize(live / connections);
      const std::string client_id = "checkout-" + std::to_string(i);
      wire::EncodeHelloRequest(0, {.name_space = "shop", .client_id = client_id},
                               &clients_.back().out);
    }
    for (const Client& client : clients_) {
      engine_->OnBytes(client.id, client.out.view(), now_);
      engine_->TurnEnd();
    }
    for (uint32_t held = 0; held < live / connections; held += pairs) {
      for (Client& client : clients_) Encode(/*release=*/false, &client);
      Turn();
    }
    NOWCALLS_CHECK(core_.books().tokens().size() == live);
  }

  void EncodeRequests() {
    for (Client& client : clients_) Encode(/*release=*/true, &client);
  }

  // Two turns of a loop: what was encoded is read, and its batch is committed.
  void Turn() {
    now_ = now_ + 1;
    const uint64_t fence = core_.books().next_fence();
    for (const Client& client : clients_) engine_->OnBytes(client.id, client.out.view(), now_);
    NOWCALLS_CHECK(!engine_->input_held());
    Commit();
    NOWCALLS_CHECK(core_.books().next_fence() == fence + acquires_);
    acquires_ = 0;
  }

 private:
  void Commit() {
    engine_->TurnEnd();
    NOWCALLS_CHECK(engine_->BeginCommit({}, now_) != nullptr);
    engine_->OnCommitDone(now_);
    engine_->TurnEnd();
  }

  struct Client {
    engine::ConnectionId id = 0;
    std::vector<uint64_t> fences;  // A ring, of what it holds.
    size_t next = 0;
    wire::OutputBuffer out;
  };

  // Grants are numbered in the order of the bytes, so nobody has to read the replies.
  void Encode(bool release, Client* client) {
    client->out.Clear();
    for (uint32_t i = 0; i < pairs_; ++i) {
      uint64_t& fence = client->fences[client->next];
      client->next = client->next + 1 == client->fences.size() ? 0 : client->next + 1;
      if (release) {
        wire::EncodeTokenRequest(2 * i + 1, wire::Method::kRelease,
                                 ids_.FromFence(Fence{fence}).value, &client->out);
      }
      const auto flow = static_cast<int64_t>(1 + prng_.Below(flows_));
      wire::EncodeAcquireRequest(
          2 * i, {.flow_id = flow, .count = 1, .request_id = next_request_id_++}, &client->out);
      fence = core_.books().next_fence() + acquires_++;
    }
  }

  uint32_t pairs_;
  uint32_t flows_;
  uint64_t next_request_id_ = kFirstRequestId;
  Instant now_{1'000'000};
  CountingDriver driver_;
  core::Core core_;
  core::TokenIds ids_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<Client> clients_;
  uint64_t acquires_ = 0;  // Encoded and not read yet.
  Prng prng_{1};
};

LoadedEngine& EngineOf(const benchmark::State& state) {
  static std::unique_ptr<LoadedEngine> engine;
  static std::vector<int64_t> made_for;
  const std::vector<int64_t> wanted = {state.range(0), state.range(1), state.range(2),
                                       state.range(3)};
  if (made_for != wanted) {
    engine.reset();  // Before the next one, so that two never share the memory.
    engine = std::make_unique<LoadedEngine>(
        static_cast<uint32_t>(wanted[0]), static_cast<uint32_t>(wanted[1]),
        static_cast<uint32_t>(wanted[2]), static_cast<uint32_t>(wanted[3]));
    made_for = wanted;
  }
  return *engine;
}

void EngineAcquireRelease(benchmark::State& state) {
  LoadedEngine& engine = EngineOf(state);
  for ([[maybe_unused]] auto iteration : state) {
    state.PauseTiming();
    engine.EncodeRequests();
    state.ResumeTiming();
    engine.Turn();
  }
  CountItems(&state, state.iterations() * state.range(0) * state.range(1) * 2);
}

// A read has "pairs" acquires and as many releases, no more than a turn has room for. With 100,000
// flows messages are looked at before they are handled (engine/rpc/look_ahead.h), with 1000 they
// are not.
BENCHMARK(EngineAcquireRelease)
    ->ArgNames({"connections", "pairs", "live", "flows"})
    ->Args({500, 1, 1000, 1000})
    ->Args({64, 8, 1024, 1000})
    ->Args({16, 16, 1024, 1000})
    ->Args({64, 8, 1'048'576, 1000})
    ->Args({64, 8, 1024, 100'000})
    ->Args({64, 8, 1'048'576, 100'000})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nowcalls::microbench
