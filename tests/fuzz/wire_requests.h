// Well-formed requests for the wire target, each made of a few bytes of its input, and what may be
// answered to them.
//
// Thread: any. Values come from short tables: those that mean something to the rules and names of
// wire_target.cc, the ends of each range, and a few beyond.
#ifndef NOWCALLS_FUZZ_WIRE_REQUESTS_H_
#define NOWCALLS_FUZZ_WIRE_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/byte_source.h"
#include "support/engine_harness.h"
#include "wire/cluster_messages.h"
#include "wire/messages.h"

namespace nowcalls::fuzz {

struct MadeRequest {
  std::string bytes;
  // Whose answer it will get; nothing for a notification.
  std::optional<wire::Method> answered;
};

// What the values of a request are taken from.
struct RequestContext {
  uint32_t msgid = 0;
  uint64_t next_fence = 1;  // Tokens that are out have fences below.
};

// So many values of its first byte make requests that differ in their method, or are more likely. A
// new method takes a place of the second half, which repeats the first, so that inputs of the
// corpus mean what they meant.
inline constexpr size_t kMethodChoices = 64;

// What a server tells of a cluster in which another member could take over.
wire::ClusterReply ClusterOfTwo();

// Takes the method, in one byte, and what its parameters need.
MadeRequest MakeRequest(const RequestContext& context, ByteSource* input);

// One of the methods, and parameters as they are given.
MadeRequest MakeRequestOf(const RequestContext& context, uint8_t method, std::string_view params);

// Fails the test case when this is no reply to a request of this method.
void CheckReply(wire::Method method, const testing::EngineReply& reply);

}  // namespace nowcalls::fuzz

#endif  // NOWCALLS_FUZZ_WIRE_REQUESTS_H_
