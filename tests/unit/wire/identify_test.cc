// identify, both ways, and what its errors do not tell.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "base/limits.h"
#include "unit/wire/golden_vectors.h"
#include "unit/wire/pack.h"
#include "wire/client_messages.h"
#include "wire/messages.h"

namespace nowcalls::wire {
namespace {

TEST_CASE("identify is the golden bytes, both ways") {
  using Out = OutputBuffer;
  constexpr char kSecret[] = "wJalr-XUtnF-EMI";
  CheckBytes(Requests(), "identify", [&](Out* o) { EncodeIdentifyRequest(34, kSecret, o); });
  CheckBytes(Requests(), "identify_as_whom", [](Out* o) { EncodeIdentifyRequest(35, "", o); });
  RequestError error;
  IdentifyParams params;
  REQUIRE(DecodeIdentify(Params("identify", Method::kIdentify), &params, &error));
  CHECK(params.secret == kSecret);
  REQUIRE(DecodeIdentify(Params("identify_as_whom", Method::kIdentify), &params, &error));
  CHECK(params.secret.empty());

  const IdentifyReply known{"checkout", "client", "secret", {{"shop", "shop-*"}}};
  const IdentifyReply nobody{"", "anybody", "nothing", std::nullopt};
  CheckBytes(Replies(), "identify", [&](Out* o) { EncodeIdentify(34, known, o); });
  CheckBytes(Replies(), "identify_of_nobody", [&](Out* o) { EncodeIdentify(35, nobody, o); });
  const Result<IdentifyReply> read = DecodeIdentifyReply(ResultOf("identify"));
  REQUIRE(read.ok());
  CHECK(read->name == "checkout");
  CHECK(read->role == "client");
  CHECK(read->proof == "secret");
  CHECK(read->namespaces == known.namespaces);
  CHECK_FALSE(DecodeIdentifyReply(ResultOf("identify_of_nobody"))->namespaces.has_value());
}

TEST_CASE("an identify that is wrong tells nothing of its secret") {
  RequestError error;
  IdentifyParams params;
  const std::string longest(kSecretBytesMax, 's');
  CHECK(DecodeIdentify(PackArray(longest), &params, &error));
  CHECK_FALSE(DecodeIdentify(PackArray(longest + "s"), &params, &error));
  CHECK(error.message == "identify: secret of 257 bytes exceeds 256");
  CHECK_FALSE(DecodeIdentify(PackArray("secret-1", "secret-2"), &params, &error));
  CHECK(error.message.find("secret-") == std::string::npos);
}

}  // namespace
}  // namespace nowcalls::wire
