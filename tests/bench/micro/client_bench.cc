// What nowcalls-bench does for an operation besides its system calls, by target: an answer taken
// off what was read and recorded, and the request that follows it encoded.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "bench/flow_picker.h"
#include "bench/micro/items.h"
#include "bench/nowcalls_dialect.h"
#include "bench/recorder.h"
#include "bench/redis_dialect.h"
#include "bench/workload.h"
#include "wire/messages.h"
#include "wire/splitter.h"

namespace nowcalls::microbench {
namespace {

using bench::Dialect;

constexpr int64_t kTurnNs = 500'000;  // From one batch of answers to the next.

const std::vector<bench::Flow>& Flows() {
  static const std::vector<bench::Flow> flows = {{1'000'001, INT32_MAX, 600'000}};
  return flows;
}

struct Nowcalls {
  static std::unique_ptr<Dialect> NewDialect(uint32_t /*lanes*/) {
    static const auto setup =
        std::make_shared<bench::NowcallsDialect::Setup>(bench::NowcallsDialect::Setup{
            {Flows(), "bench"}, {}, {}, /*next_request_id=*/1'000'000'000'000});
    return std::make_unique<bench::NowcallsDialect>(setup);
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
  static std::unique_ptr<Dialect> NewDialect(uint32_t lanes) {
    static const auto setup = std::make_shared<bench::RedisDialect::Setup>(
        Flows(), "bench", "0123456789abcdef0123456789abcdef01234567", 0x1122334455667788);
    return std::make_unique<bench::RedisDialect>(setup, lanes);
  }

  // Every lane has asked something.
  static void Answer(std::string_view /*requests*/, uint32_t lanes, wire::OutputBuffer* out) {
    for (uint32_t i = 0; i < lanes; ++i) out->Append(":1\r\n");
  }
};

// A closed loop whose server is Server.
template <typename Server>
class LoadedClient {
 public:
  LoadedClient(uint32_t connections, uint32_t lanes)
      : lanes_(lanes),
        out_(connections),
        answers_(connections),
        workload_({.lanes = lanes},
                  bench::FlowPicker(0, 1, bench::FlowDistribution::kRoundRobin, 0), &recorder_) {
    recorder_.Count(0, INT64_MAX);
    for (uint32_t i = 0; i < out_.size(); ++i) {
      dialects_.push_back(Server::NewDialect(lanes));
      workload_.AddConnection(dialects_[i].get(), &out_[i]);
    }
    workload_.Start(now_);
  }

  void PrepareAnswers() {
    for (uint32_t i = 0; i < out_.size(); ++i) {
      answers_[i].Clear();
      server_.Answer(out_[i].view(), lanes_, &answers_[i]);
      out_[i].Clear();
    }
  }

  void TakeAnswers() {
    now_ = {now_.ns + kTurnNs, now_.wall_ms + 1};
    for (uint32_t i = 0; i < out_.size(); ++i) {
      std::string_view input = answers_[i].view();
      bench::Answer answer;
      while (dialects_[i]->Take(&input, &answer) == Dialect::Outcome::kAnswer) {
        NOWCALLS_CHECK(workload_.OnAnswer(i, answer, now_));
      }
      NOWCALLS_CHECK(input.empty());
      workload_.StartWaiting(i, now_);
    }
    workload_.TakeTouched([](uint32_t) {});
  }

  bool NothingFailed() const { return recorder_.errors_ever() == 0 && workload_.refused() == 0; }

 private:
  uint32_t lanes_;
  std::vector<wire::OutputBuffer> out_;
  std::vector<wire::OutputBuffer> answers_;
  Server server_;
  bench::Recorder recorder_;
  bench::Workload workload_;
  bench::Moment now_{0, 1'700'000'000'000};
  std::vector<std::unique_ptr<Dialect>> dialects_;
};

template <typename Server>
void ClientOperation(benchmark::State& state) {
  const auto client = std::make_unique<LoadedClient<Server>>(static_cast<uint32_t>(state.range(0)),
                                                             static_cast<uint32_t>(state.range(1)));
  for ([[maybe_unused]] auto iteration : state) {
    state.PauseTiming();
    client->PrepareAnswers();
    state.ResumeTiming();
    client->TakeAnswers();
  }
  NOWCALLS_CHECK(client->NothingFailed());
  CountItems(&state, state.iterations() * state.range(0) * state.range(1));
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"connections", "in_flight"})->Args({50, 64})->Args({500, 4});
}

BENCHMARK_TEMPLATE(ClientOperation, Nowcalls)->Apply(Shapes);
BENCHMARK_TEMPLATE(ClientOperation, Redis)->Apply(Shapes);

}  // namespace
}  // namespace nowcalls::microbench
