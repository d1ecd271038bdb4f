// What nowcalls-bench does for an operation besides its system calls, by target: an answer taken
// off what was read and recorded, and the request that follows it encoded.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "bench/flow_picker.h"
#include "bench/load.h"
#include "bench/micro/items.h"
#include "bench/nowcalls_protocol.h"
#include "bench/recorder.h"
#include "bench/redis_protocol.h"
#include "wire/messages.h"
#include "wire/splitter.h"

namespace nowcalls::microbench {
namespace {

using bench::Protocol;

constexpr uint32_t kConnections = 50;
constexpr int64_t kTurnNs = 500'000;  // From one batch of answers to the next.
constexpr double kSecondNs = 1e9;

const std::vector<bench::Flow>& Flows() {
  static const std::vector<bench::Flow> flows = {{1'000'001, INT32_MAX, 600'000}};
  return flows;
}

struct Nowcalls {
  static std::unique_ptr<Protocol> NewProtocol(uint32_t /*lanes*/) {
    static const auto setup = std::make_shared<bench::NowcallsProtocol::Setup>(
        bench::NowcallsProtocol::Setup{Flows(), "bench", {}});
    return std::make_unique<bench::NowcallsProtocol>(setup);
  }

  // Grants and releases whatever it is asked for.
  void Answer(std::string_view requests, uint32_t /*lanes*/, wire::OutputBuffer* out) {
    wire::MessageSplitter splitter;
    wire::RequestError error;
    size_t size = 0;
    while (splitter.Next(requests, &size) == wire::MessageSplitter::Outcome::kMessage) {
      wire::Envelope envelope;
      NOWCALLS_CHECK(wire::DecodeEnvelope(requests.substr(0, size), &envelope, &error));
      if (envelope.method == wire::Method::kAcquire) {
        ++fence;
        wire::EncodeAcquire(
            envelope.msgid,
            {TokenStatus::kOk, fence * 0x9e3779b97f4a7c15 >> 1, fence, 2000, INT32_MAX, 600'000},
            out);
      } else {
        wire::EncodeStatus(envelope.msgid, TokenStatus::kReleaseOk, out);
      }
      requests.remove_prefix(size);
    }
  }

  uint64_t fence = 5'000'000'000;
};

struct Redis {
  static std::unique_ptr<Protocol> NewProtocol(uint32_t lanes) {
    static const auto setup = std::make_shared<bench::RedisProtocol::Setup>(
        Flows(), "bench", "0123456789abcdef0123456789abcdef01234567", 0x1122334455667788);
    return std::make_unique<bench::RedisProtocol>(setup, lanes);
  }

  // Every lane has asked something.
  static void Answer(std::string_view /*requests*/, uint32_t lanes, wire::OutputBuffer* out) {
    for (uint32_t i = 0; i < lanes; ++i) out->Append(":1\r\n");
  }
};

// A closed loop of 50 connections whose server is Server.
template <typename Server>
class LoadedClient {
 public:
  explicit LoadedClient(uint32_t lanes)
      : lanes_(lanes),
        load_({.lanes = lanes}, bench::FlowPicker(0, 1, bench::FlowDistribution::kRoundRobin, 0),
              &recorder_) {
    recorder_.Count(0, INT64_MAX);
    out_.resize(kConnections);
    answers_.resize(kConnections);
    for (uint32_t i = 0; i < kConnections; ++i) {
      protocols_.push_back(Server::NewProtocol(lanes));
      load_.AddConnection(protocols_[i].get(), &out_[i]);
    }
    load_.Start(now_);
  }

  void PrepareAnswers() {
    for (uint32_t i = 0; i < kConnections; ++i) {
      answers_[i].Clear();
      server_.Answer(out_[i].view(), lanes_, &answers_[i]);
      out_[i].Clear();
    }
  }

  void TakeAnswers() {
    now_ = {now_.ns + kTurnNs, now_.wall_ms + 1};
    for (uint32_t i = 0; i < kConnections; ++i) {
      std::string_view input = answers_[i].view();
      bench::Answer answer;
      while (protocols_[i]->Take(&input, &answer) == Protocol::Outcome::kAnswer) {
        NOWCALLS_CHECK(load_.OnAnswer(i, answer, now_));
      }
      NOWCALLS_CHECK(input.empty());
      load_.StartWaiting(i, now_);
    }
    load_.TakeTouched([](uint32_t) {});
  }

  bool NothingFailed() const { return recorder_.errors_ever() == 0 && load_.refused() == 0; }

 private:
  uint32_t lanes_;
  Server server_;
  bench::Recorder recorder_;
  bench::Load load_;
  bench::Moment now_{0, 1'700'000'000'000};
  std::vector<std::unique_ptr<Protocol>> protocols_;
  std::vector<wire::OutputBuffer> out_;
  std::vector<wire::OutputBuffer> answers_;
};

// The time is that of the client's part alone.
template <typename Server>
void ClientOperation(benchmark::State& state) {
  const auto client = std::make_unique<LoadedClient<Server>>(static_cast<uint32_t>(state.range(0)));
  for ([[maybe_unused]] auto iteration : state) {
    client->PrepareAnswers();
    const int64_t begin_ns = MonotonicNs();
    client->TakeAnswers();
    state.SetIterationTime(static_cast<double>(MonotonicNs() - begin_ns) / kSecondNs);
  }
  NOWCALLS_CHECK(client->NothingFailed());
  CountItems(&state, state.iterations() * kConnections * state.range(0));
}

BENCHMARK_TEMPLATE(ClientOperation, Nowcalls)
    ->ArgName("in_flight")
    ->Arg(64)
    ->Arg(1)
    ->UseManualTime();
BENCHMARK_TEMPLATE(ClientOperation, Redis)->ArgName("in_flight")->Arg(64)->Arg(1)->UseManualTime();

}  // namespace
}  // namespace nowcalls::microbench
