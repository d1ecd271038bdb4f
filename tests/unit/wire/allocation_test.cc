// The hot path allocates nothing.
#include <doctest/doctest.h>

#include <string>

#include "support/golden.h"
#include "unit/allocation_counter.h"
#include "unit/wire/pack.h"
#include "wire/messages.h"
#include "wire/splitter.h"

namespace nowcalls::wire {
namespace {

using Outcome = MessageSplitter::Outcome;
using testing::Allocations;

TEST_CASE("a hot request and its reply allocate nothing once the buffer has grown") {
  const auto requests = testing::LoadGolden(testing::GoldenPath("wire_requests.hex"));
  const std::string& acquire = requests.at("acquire_prioritized");
  const std::string& release = requests.at("release");
  OutputBuffer out;
  out.Append("room");
  out.Clear();
  const size_t capacity = out.capacity();
  const int64_t before = Allocations();
  MessageSplitter splitter;
  size_t size = 0;
  Envelope envelope;
  RequestError error;
  AcquireParams acquire_params;
  TokenParams token_params;
  bool decoded = splitter.Next(acquire, &size) == Outcome::kMessage &&
                 DecodeEnvelope(acquire, &envelope, &error) &&
                 DecodeAcquire(envelope.params, &acquire_params, &error);
  EncodeAcquire(envelope.msgid, {.status = TokenStatus::kOk, .token_id = UINT64_MAX}, &out);
  decoded = decoded && splitter.Next(release, &size) == Outcome::kMessage &&
            DecodeEnvelope(release, &envelope, &error) &&
            DecodeToken(envelope.method, envelope.params, &token_params, &error);
  EncodeStatus(envelope.msgid, TokenStatus::kReleaseOk, &out);
  EncodeKeep(envelope.msgid, {.status = TokenStatus::kOk, .hold_ms = 4000}, &out);
  const int64_t after = Allocations();
  CHECK(decoded);
  CHECK(after == before);
  CHECK(out.capacity() == capacity);
}

TEST_CASE("lengths and depths that nobody paid for cost no allocation") {
  const std::string streams[] = {Bytes("94 dd ffffffff"), Bytes("94 c6 ffffffff"),
                                 Bytes("94 df ffffffff"), Bytes("94 db ffffffff"),
                                 std::string(100'000, '\x94')};
  for (const std::string& stream : streams) {
    const int64_t before = Allocations();
    MessageSplitter splitter;
    size_t size = 0;
    const Outcome outcome = splitter.Next(stream, &size);
    const int64_t after = Allocations();
    CHECK(outcome == Outcome::kInvalid);
    CHECK(after == before);
  }
}

}  // namespace
}  // namespace nowcalls::wire
