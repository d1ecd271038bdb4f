// Requests from bytes and replies to bytes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/prng.h"
#include "bench/micro/items.h"
#include "wire/client_messages.h"
#include "wire/messages.h"
#include "wire/output_buffer.h"
#include "wire/splitter.h"

namespace nowcalls::microbench {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr uint32_t kInFlight = 64;
constexpr uint64_t kTokenMax = (uint64_t{1} << 63) - 1;

// Acquires and releases in turn, as a client with 64 in flight sends them.
wire::OutputBuffer Requests(size_t bytes) {
  wire::OutputBuffer out;
  Prng prng(1);
  for (uint32_t i = 0; out.size() < bytes; ++i) {
    const uint32_t msgid = 2 * (i % kInFlight);
    const auto flow = static_cast<int64_t>(1'000'000 + prng.Below(10'000));
    wire::EncodeAcquireRequest(msgid, {.flow_id = flow, .count = 1}, &out);
    wire::EncodeTokenRequest(msgid + 1, wire::Method::kRelease, 1 + prng.Below(kTokenMax), &out);
  }
  return out;
}

// Calls visit(message) for each whole message of a read.
template <typename Visit>
int64_t ForEachMessage(std::string_view bytes, Visit&& visit) {
  wire::MessageSplitter splitter;
  int64_t messages = 0;
  size_t size = 0;
  while (splitter.Next(bytes, &size) == wire::MessageSplitter::Outcome::kMessage) {
    visit(bytes.substr(0, size));
    bytes.remove_prefix(size);
    ++messages;
  }
  return messages;
}

// Splits reads of so many bytes, and calls visit(message) for each message.
template <typename Visit>
void SplitReads(benchmark::State* state, Visit&& visit) {
  const wire::OutputBuffer requests = Requests(static_cast<size_t>(state->range(0)));
  int64_t messages = 0;
  for ([[maybe_unused]] auto iteration : *state) {
    messages += ForEachMessage(requests.view(), visit);
  }
  CountItems(state, messages);
}

wire::Envelope EnvelopeOf(std::string_view message) {
  wire::Envelope envelope;
  wire::RequestError error;
  NOWCALLS_CHECK(wire::DecodeEnvelope(message, &envelope, &error));
  return envelope;
}

void SplitRequests(benchmark::State& state) {
  SplitReads(&state, [](std::string_view message) { benchmark::DoNotOptimize(message.size()); });
}

void SplitRequestsAndEnvelopes(benchmark::State& state) {
  SplitReads(&state,
             [](std::string_view message) { benchmark::DoNotOptimize(EnvelopeOf(message)); });
}

void DecodeRequests(benchmark::State& state) {
  SplitReads(&state, [](std::string_view message) {
    const wire::Envelope envelope = EnvelopeOf(message);
    wire::RequestError error;
    if (envelope.method == wire::Method::kAcquire) {
      wire::AcquireParams params;
      NOWCALLS_CHECK(wire::DecodeAcquire(envelope.params, &params, &error));
      benchmark::DoNotOptimize(params);
    } else {
      wire::TokenParams params;
      NOWCALLS_CHECK(wire::DecodeToken(envelope.method, envelope.params, &params, &error));
      benchmark::DoNotOptimize(params);
    }
  });
}

// Into a buffer that is used again and again, as a connection's is.
template <typename Encode>
void EncodeReplies(benchmark::State* state, Encode&& encode) {
  wire::OutputBuffer out;
  uint64_t number = 0;
  for ([[maybe_unused]] auto iteration : *state) {
    ++number;
    encode(static_cast<uint32_t>(2 * (number % kInFlight)), number, &out);
    if (out.size() < kReadBytes) continue;
    benchmark::DoNotOptimize(out.data());
    out.Clear();
  }
  CountItems(state, state->iterations());
}

void EncodeGrants(benchmark::State& state) {
  EncodeReplies(&state, [](uint32_t msgid, uint64_t number, wire::OutputBuffer* out) {
    wire::EncodeAcquire(msgid,
                        {.status = TokenStatus::kOk,
                         .token_id = number * 0x9e3779b97f4a7c15 >> 1,
                         .fence = 5'000'000'000 + number,
                         .now_calls = 1024,
                         .level = INT32_MAX,
                         .hold_ms = 120'000},
                        out);
  });
}

void EncodeRefusals(benchmark::State& state) {
  EncodeReplies(&state, [](uint32_t msgid, uint64_t /*number*/, wire::OutputBuffer* out) {
    wire::EncodeAcquire(
        msgid, {.status = TokenStatus::kBlocked, .level = 1000, .refused_by = RefusedBy::kLevel},
        out);
  });
}

void EncodeReleases(benchmark::State& state) {
  EncodeReplies(&state, [](uint32_t msgid, uint64_t /*number*/, wire::OutputBuffer* out) {
    wire::EncodeStatus(msgid + 1, TokenStatus::kReleaseOk, out);
  });
}

// The large one does not fit the caches.
BENCHMARK(SplitRequests)->ArgName("bytes")->Arg(kReadBytes);
BENCHMARK(SplitRequestsAndEnvelopes)->ArgName("bytes")->Arg(kReadBytes);
BENCHMARK(DecodeRequests)->ArgName("bytes")->Arg(kReadBytes)->Arg(1024 * kReadBytes);
BENCHMARK(EncodeGrants);
BENCHMARK(EncodeRefusals);
BENCHMARK(EncodeReleases);

}  // namespace
}  // namespace nowcalls::microbench
