// data/golden/wire_*.hex, taken apart for the tests that encode and decode them.
#ifndef NOWCALLS_UNIT_WIRE_GOLDEN_VECTORS_H_
#define NOWCALLS_UNIT_WIRE_GOLDEN_VECTORS_H_

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/hex.h"
#include "support/golden.h"
#include "wire/client_messages.h"
#include "wire/messages.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

using Vectors = std::map<std::string, std::string>;

inline const Vectors& Requests() {
  static const Vectors vectors = testing::LoadGolden(testing::GoldenPath("wire_requests.hex"));
  return vectors;
}
inline const Vectors& Replies() {
  static const Vectors vectors = testing::LoadGolden(testing::GoldenPath("wire_replies.hex"));
  return vectors;
}

// `encode` writes the bytes of the vector.
inline void CheckBytes(const Vectors& vectors, const std::string& name,
                       const std::function<void(OutputBuffer*)>& encode) {
  CAPTURE(name);
  OutputBuffer out;
  encode(&out);
  REQUIRE(vectors.contains(name));
  CHECK(ToHex(out.view()) == ToHex(vectors.at(name)));
}

// The parameters of a golden request, which is one to `method`.
inline std::string_view Params(const std::string& name, Method method) {
  Envelope envelope;
  RequestError error;
  REQUIRE(DecodeEnvelope(Requests().at(name), &envelope, &error));
  CHECK(envelope.method == method);
  return envelope.params;
}

// The result of a golden reply, which is no error.
inline std::string_view ResultOf(const std::string& name) {
  const Result<Response> response = DecodeResponse(Replies().at(name));
  REQUIRE(response.ok());
  CHECK_FALSE(response->error.has_value());
  return response->result;
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_UNIT_WIRE_GOLDEN_VECTORS_H_
