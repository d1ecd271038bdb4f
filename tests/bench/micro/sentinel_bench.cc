// Sentinel's FLOW through the whole engine: all that the loop thread does for it but the sockets.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/check.h"
#include "bench/micro/items.h"
#include "bench/micro/loaded_core.h"
#include "engine/engine.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::microbench {
namespace {

// Sockets that take everything.
class FrameSink : public engine::Driver {
 public:
  void Write(std::span<engine::Output> outputs) override {
    for (const engine::Output& output : outputs) bytes_ += output.bytes.size();
  }
  void Close(engine::ConnectionId /*id*/, bool /*flush*/) override { NOWCALLS_CHECK(false); }
  void SetReading(engine::ConnectionId /*id*/, bool /*on*/) override {}
  Status BeginBackup(const engine::BackupJob& /*job*/) override {
    return Status::ResourceExhausted("none here");
  }
  void Log(engine::Severity /*severity*/, LogTopic /*topic*/, std::string_view /*message*/,
           const LogFields& /*fields*/) override {}
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// A turn reads `frames` FLOW requests from each of `connections`.
void EngineFlow(benchmark::State& state) {
  const auto connections = static_cast<uint32_t>(state.range(0));
  const auto frames = static_cast<uint32_t>(state.range(1));
  const auto flows = static_cast<uint32_t>(state.range(2));
  core::CoreOptions options = BenchOptions();
  options.limits.namespace_qps_max = 0;
  Instant now{1'000'000};
  FrameSink sink;
  core::Core core(options);
  NOWCALLS_CHECK(core.FinishLoad(std::nullopt).ok());
  core.Begin(now);
  engine::Engine engine(engine::EngineOptions(), &core, &sink, now);
  NOWCALLS_CHECK(engine.LoadRules({BenchRules(flows)}, now).ok());
  NOWCALLS_CHECK(engine.BeginCommit({}, now) != nullptr);
  engine.OnCommitDone(now);
  wire::OutputBuffer requests;
  for (uint32_t i = 0; i < frames; ++i) {
    wire::sentinel::EncodeCallRequest(i, wire::sentinel::RequestType::kFlow,
                                      {1 + (i * 7919) % flows, 1}, &requests);
  }
  for (uint32_t i = 0; i < connections; ++i) {
    NOWCALLS_CHECK(engine.OnConnect({.name = "127.0.0.1:" + std::to_string(i)}, now).has_value());
  }
  const auto turn = [&] {
    now = now + 1;
    for (uint32_t id = 0; id < connections; ++id) engine.OnBytes(id, requests.view(), now);
    engine.ResumeInput(now);
    engine.TurnEnd();
  };
  turn();
  const size_t before = sink.bytes();
  for ([[maybe_unused]] auto iteration : state) turn();
  constexpr size_t kAnswerBytes = 16;
  const size_t answers = (sink.bytes() - before) / kAnswerBytes;
  NOWCALLS_CHECK(answers == static_cast<size_t>(state.iterations()) * connections * frames);
  CountItems(&state, static_cast<int64_t>(answers));
}

BENCHMARK(EngineFlow)
    ->ArgNames({"connections", "frames", "flows"})
    ->Args({50, 1, 16})
    ->Args({50, 64, 16})
    ->Args({50, 64, 10'000})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nowcalls::microbench
