// Decoding of requests: what is accepted, what is refused and with which words.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "unit/wire/pack.h"
#include "wire/messages.h"

namespace nowcalls::wire {
namespace {

// "CODE message", or "" when the parameters are accepted.
template <typename Out>
std::string RefusalOf(bool (*decode)(std::string_view, Out*, RequestError*),
                      const std::string& params) {
  Out out;
  RequestError error;
  if (decode(params, &out, &error)) return "";
  return std::string(ErrorCodeName(error.code)) + " " + error.message;
}
template <typename Out>
std::string RefusalOf(bool (*decode)(Method, std::string_view, Out*, RequestError*), Method method,
                      const std::string& params) {
  Out out;
  RequestError error;
  if (decode(method, params, &out, &error)) return "";
  return std::string(ErrorCodeName(error.code)) + " " + error.message;
}

std::string EnvelopeRefusal(const std::string& message) {
  Envelope envelope;
  RequestError error;
  if (DecodeEnvelope(message, &envelope, &error)) return "";
  CHECK(error.code == ErrorCode::kMalformed);
  return error.message;
}

AcquireParams Acquire(const std::string& params) {
  AcquireParams out;
  RequestError error;
  CHECK(DecodeAcquire(params, &out, &error));
  CHECK(error.message.empty());
  return out;
}

const std::vector<int> kNone;

TEST_CASE("an envelope gives the msgid, the method and the bytes of its parameters") {
  const std::string params = PackArray(111, 1);
  const std::string message = PackArray(0, UINT32_MAX, "acquire", Raw{params});
  Envelope envelope;
  RequestError error;
  REQUIRE(DecodeEnvelope(message, &envelope, &error));
  CHECK_FALSE(envelope.notification);
  CHECK(envelope.msgid == UINT32_MAX);
  CHECK(envelope.method == Method::kAcquire);
  CHECK(envelope.method_name == "acquire");
  CHECK(envelope.params == params);
}

TEST_CASE("a notification has no msgid") {
  Envelope envelope;
  RequestError error;
  REQUIRE(DecodeEnvelope(PackArray(2, "release", std::vector<int>{5}), &envelope, &error));
  CHECK(envelope.notification);
  CHECK(envelope.method == Method::kRelease);
}

TEST_CASE("what a request is about is seen ahead as soon as its bytes are there") {
  const std::string acquire = PackArray(0, UINT32_MAX, "acquire", Raw{PackArray(-70'000, 1)});
  const std::string release = PackArray(0, UINT32_MAX, "release", Raw{PackArray(INT64_MAX, 1)});
  for (size_t size = 0; size <= acquire.size(); ++size) {
    CAPTURE(size);
    const Subject subject = SubjectAhead(std::string_view{acquire}.substr(0, size));
    CHECK(subject.flow == (size < acquire.size() - 1 ? 0 : -70'000));  // The count is one byte.
    CHECK(subject.token == 0);
  }
  for (size_t size = 0; size <= release.size(); ++size) {
    CAPTURE(size);
    const Subject subject = SubjectAhead(std::string_view{release}.substr(0, size));
    CHECK(subject.flow == 0);
    CHECK(subject.token == (size < release.size() - 1 ? 0 : uint64_t{INT64_MAX}));
  }
  CHECK(SubjectAhead(acquire + "\x94").flow == -70'000);
}

TEST_CASE("what is no acquire or release of one thing is about nothing that is seen ahead") {
  for (const std::string& other :
       {PackArray(0, 1, "keep", std::vector<int>{111}),
        PackArray(2, "acquire", Raw{PackArray(111, 1)}), PackArray(0, 1, "acquire", kNone) + "\x01",
        PackArray(0, 1, "acquire", Raw{PackArray("111", 1)}),
        PackArray(0, 1, "release", Raw{PackArray(-111, 1)}),
        PackArray(1, 1, "acquire", Raw{PackArray(111, 1)})}) {
    const Subject subject = SubjectAhead(other);
    CHECK(subject.flow == 0);
    CHECK(subject.token == 0);
  }
}

TEST_CASE("an unknown method is not a malformed envelope") {
  Envelope envelope;
  RequestError error;
  const std::string message = PackArray(0, 7, "shutdown", kNone);
  REQUIRE(DecodeEnvelope(message, &envelope, &error));
  CHECK(envelope.method == Method::kUnknown);
  CHECK(envelope.method_name == "shutdown");
}

TEST_CASE("every method has one name") {
  for (int i = 1; i < static_cast<int>(kMethodCount); ++i) {
    const auto method = static_cast<Method>(i);
    CAPTURE(i);
    CHECK(MethodFromName(MethodName(method)) == method);
  }
  CHECK(MethodFromName("acquirE") == Method::kUnknown);
  CHECK(MethodFromName("") == Method::kUnknown);
}

TEST_CASE("an envelope of another shape is refused") {
  CHECK(EnvelopeRefusal(PackArray(1, 1, Nil(), Nil())) ==
        "message type must be 0 (request) or 2 (notification)");
  CHECK(EnvelopeRefusal(PackArray("0", 1, "ping", kNone)) ==
        "message type must be 0 (request) or 2 (notification)");
  CHECK(EnvelopeRefusal(PackArray(0, 1, "ping")) == "a request has 4 elements, got 3");
  CHECK(EnvelopeRefusal(PackArray(2, 1, "ping", kNone)) == "a notification has 3 elements, got 4");
  CHECK(EnvelopeRefusal(PackArray(0, -1, "ping", kNone)) == "msgid must be 0..4294967295");
  CHECK(EnvelopeRefusal(PackArray(0, uint64_t{1} << 32, "ping", kNone)) ==
        "msgid must be 0..4294967295");
  CHECK(EnvelopeRefusal(PackArray(0, Nil(), "ping", kNone)) == "msgid must be an integer, got nil");
  CHECK(EnvelopeRefusal(PackArray(0, 1, 2, kNone)) == "method must be a str, got int");
  CHECK(EnvelopeRefusal(PackArray(0, 1, "ping", EmptyMap())) == "params must be an array, got map");
  CHECK(EnvelopeRefusal(PackArray(0, 1, std::string(4097, 'm'), kNone)) ==
        "method of 4097 bytes exceeds 4096");
  CHECK(EnvelopeRefusal("\xc0") == "message must be an array, got nil");
}

TEST_CASE("hello takes protocol, namespace and client id") {
  HelloParams out;
  RequestError error;
  const std::string params = PackArray(1, "shop", "worker-7", EmptyMap());
  REQUIRE(DecodeHello(params, &out, &error));
  CHECK(out.protocol == 1);
  CHECK(out.name_space == "shop");
  CHECK(out.client_id == "worker-7");
  const std::string shorter = PackArray(Nil(), "shop");
  REQUIRE(DecodeHello(shorter, &out, &error));
  CHECK(out.protocol == 1);
  CHECK_FALSE(out.client_id.has_value());
  CHECK_FALSE(out.lost);
  REQUIRE(DecodeHello(PackArray(1, "shop", "w", PackMap("lost", true)), &out, &error));
  CHECK(out.lost);
  CHECK_FALSE(out.exclusive);
  REQUIRE(DecodeHello(PackArray(1, "shop", "w", PackMap("exclusive", true)), &out, &error));
  CHECK(out.exclusive);
  CHECK(out.instance == 0);
  const uint64_t greatest = INT64_MAX;
  REQUIRE(DecodeHello(PackArray(1, "shop", "w", PackMap("instance", greatest)), &out, &error));
  CHECK(out.instance == greatest);
}

TEST_CASE("hello refuses other protocols and bad names") {
  CHECK(RefusalOf(DecodeHello, PackArray(2, "shop")) ==
        "UNSUPPORTED hello: protocol 2 is not supported, this server speaks 1");
  CHECK(RefusalOf(DecodeHello, PackArray()) == "BAD_PARAMS hello: namespace is missing");
  CHECK(RefusalOf(DecodeHello, PackArray(1, "")) ==
        "BAD_PARAMS hello: namespace must be 1..128 bytes, got 0");
  CHECK(RefusalOf(DecodeHello, PackArray(1, "a\nb")) ==
        "BAD_PARAMS hello: namespace must be UTF-8 without control characters, got 'a\\x0ab'");
  CHECK(RefusalOf(DecodeHello, PackArray(1, "shop", std::string(129, 'x'))) ==
        "BAD_PARAMS hello: client_id must be 1..128 bytes, got 129");
  CHECK(RefusalOf(DecodeHello, PackArray(1, "shop", "@me")) ==
        "BAD_PARAMS hello: client_id must not start with '@'");
  CHECK(RefusalOf(DecodeHello, PackArray(1, "shop", "me", PackMap("resume", true))) ==
        "BAD_PARAMS hello: options.resume is not known");
  CHECK(
      RefusalOf(DecodeHello, PackArray(1, "shop", "me", PackMap("instance", uint64_t{1} << 63))) ==
      "BAD_PARAMS hello: options.instance must fit a signed 64-bit integer");
  CHECK(RefusalOf(DecodeHello, PackArray(1, "shop", "me", EmptyMap(), 5)) ==
        "BAD_PARAMS hello takes at most 4 parameters, got 5");
}

TEST_CASE("acquire takes a flow, a count and options") {
  const AcquireParams plain = Acquire(PackArray(111, 2));
  CHECK(plain.flow_id == 111);
  CHECK(plain.count == 2);
  CHECK_FALSE(plain.prioritized);
  CHECK(Acquire(PackArray(111, 2, PackMap("prioritized", true))).prioritized);
  CHECK_FALSE(Acquire(PackArray(111, 2, Nil())).prioritized);
  CHECK_FALSE(Acquire(PackArray(111, 2, PackMap("prioritized", Nil()))).prioritized);
}

TEST_CASE("an acquire may say how long it holds its token") {
  CHECK(Acquire(PackArray(1, 1, PackMap("hold_ms", 1500))).hold_ms == 1500);
  CHECK(Acquire(PackArray(1, 1)).hold_ms == 0);
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("hold_ms", UINT64_MAX))) ==
        "BAD_PARAMS acquire: options.hold_ms must fit a signed 64-bit integer");
}

TEST_CASE("numbers out of acquire's range are left to the rules, numbers that are none are not") {
  CHECK(Acquire(PackArray(-5, -2147483649)).count == -2147483649);
  CHECK(Acquire(PackArray(INT64_MIN, INT64_MAX)).flow_id == INT64_MIN);
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, uint64_t{1} << 63)) ==
        "BAD_PARAMS acquire: count must fit a signed 64-bit integer");
}

TEST_CASE("a float that is a rounded id is told as one, in any integer, and others are not") {
  const std::string rounded =
      " must be an integer, got a float of 2^53 or more, which is a rounded integer: ids have 63 "
      "bits, so decode and encode them as 64-bit integers (in JavaScript as BigInt, by useBigInt64 "
      "of @msgpack/msgpack)";
  // msgpack-cxx packs whole floats as integers, and other libraries do not.
  const auto refusal = [](double id) {
    std::string params("\x92\xcb", 2);
    AppendBigEndian(&params, std::bit_cast<uint64_t>(id));
    return RefusalOf(DecodeAcquire, params + "\x01");
  };
  for (const double id : {9007199254740992.0, 1530164418420379768.0, -1e18, 1.8e19, 1e300}) {
    CAPTURE(id);
    CHECK(refusal(id) == "BAD_PARAMS acquire: flow_id" + rounded);
  }
  std::string narrow("\x92\xca", 2);
  AppendBigEndian(&narrow, std::bit_cast<uint32_t>(1e18F));
  CHECK(RefusalOf(DecodeAcquire, narrow + "\x01") == "BAD_PARAMS acquire: flow_id" + rounded);
  for (const double other : {9007199254740991.0, 1.0, 0.5, -1.0, double{INFINITY}, double{NAN}}) {
    CAPTURE(other);
    CHECK(refusal(other) == "BAD_PARAMS acquire: flow_id must be an integer or a str, got float");
  }
}

TEST_CASE("acquire says what is wrong with which parameter") {
  CHECK(RefusalOf(DecodeAcquire, PackArray()) == "BAD_PARAMS acquire: flow_id is missing");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1)) == "BAD_PARAMS acquire: count is missing");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, Nil())) == "BAD_PARAMS acquire: count is missing");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, "1")) ==
        "BAD_PARAMS acquire: count must be an integer, got str");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1.5, 1)) ==
        "BAD_PARAMS acquire: flow_id must be an integer or a str, got float");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, 5)) ==
        "BAD_PARAMS acquire: options must be a map, got int");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("foo", 1))) ==
        "BAD_PARAMS acquire: options.foo is not known");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("f\xff", 1))) ==
        "BAD_PARAMS acquire: options.'f\\xff' is not known");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("prioritized", 1))) ==
        "BAD_PARAMS acquire: options.prioritized must be a bool, got int");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, Raw{Bytes("81 05 c3")})) ==
        "BAD_PARAMS acquire: options.key must be a str, got int");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, EmptyMap(), 1)) ==
        "BAD_PARAMS acquire takes at most 3 parameters, got 4");
}

TEST_CASE("an acquire may wait up to an hour and carry any request id") {
  AcquireParams out;
  RequestError error;
  REQUIRE(DecodeAcquire(PackArray(1, 1), &out, &error));
  CHECK_FALSE(out.wait_ms.has_value());
  CHECK(out.request_id == 0);
  REQUIRE(DecodeAcquire(PackArray(1, 1, PackMap("wait_ms", 0)), &out, &error));
  CHECK(out.wait_ms == 0);
  REQUIRE(DecodeAcquire(PackArray(1, 1, PackMap("wait_ms", kWaitMsMax)), &out, &error));
  CHECK(out.wait_ms == kWaitMsMax);
  REQUIRE(DecodeAcquire(PackArray(1, 1, PackMap("request_id", UINT64_MAX)), &out, &error));
  CHECK(out.request_id == UINT64_MAX);
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("wait_ms", kWaitMsMax + 1))) ==
        "BAD_PARAMS acquire: options.wait_ms must be 0..3600000, got 3600001");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("wait_ms", -1))) ==
        "BAD_PARAMS acquire: options.wait_ms must fit an unsigned 64-bit integer");
  for (const char* name : {"wait_ms", "request_id"}) {
    CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap(name, Nil()))).empty());
    CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap(name, "5"))) ==
          "BAD_PARAMS acquire: options." + std::string(name) + " must be an integer, got str");
  }
}

TEST_CASE("the parameter of an acquire is a scalar that a ledger can hold") {
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("param", Nil()))).empty());
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("param", EmptyMap()))) ==
        "BAD_PARAMS acquire: options.param must be an int, float, bool or str, got map");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("param", UINT64_MAX))) ==
        "BAD_PARAMS acquire: options.param must fit a signed 64-bit integer");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("param", std::string(1025, 'x')))) ==
        "BAD_PARAMS acquire: options.param of 1025 bytes exceeds 1024");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("param", std::string("a\0b", 3)))) ==
        "BAD_PARAMS acquire: options.param must not hold a zero byte");
  CHECK(RefusalOf(DecodeAcquire, PackArray(1, 1, PackMap("param", std::string("\xff")))) ==
        "BAD_PARAMS acquire: options.param must be UTF-8");
}

TEST_CASE("acquire_all takes 1 to 64 items, each once, and the options of acquire but param") {
  const auto refusal = [](const std::string& params) {
    return RefusalOf(DecodeAcquireAll, params);
  };
  const auto item = [](const auto&... values) { return Raw{PackArray(values...)}; };
  const auto items = [](const auto&... values) { return Raw{PackArray(values...)}; };
  const auto many = [](int count) {
    std::string bytes{'\xdc', '\0', static_cast<char>(count)};
    for (int i = 0; i < count; ++i) bytes += PackArray(i, 1);
    return Raw{bytes};
  };
  CHECK(refusal(PackArray(many(64))).empty());
  CHECK(refusal(PackArray(many(65))) == "BAD_PARAMS acquire_all: items must be 1..64, got 65");
  CHECK(refusal(PackArray(items())) == "BAD_PARAMS acquire_all: items must be 1..64, got 0");
  CHECK(refusal(PackArray()) == "BAD_PARAMS acquire_all: items is missing");
  CHECK(refusal(PackArray(Nil())) == "BAD_PARAMS acquire_all: items is missing");
  CHECK(refusal(PackArray(7)) == "BAD_PARAMS acquire_all: items must be an array, got int");
  CHECK(refusal(PackArray(items(7))) ==
        "BAD_PARAMS acquire_all: items.item must be an array, got int");
  CHECK(refusal(PackArray(items(item(1)))) == "BAD_PARAMS acquire_all: item.count is missing");
  CHECK(refusal(PackArray(items(item(1, "1")))) ==
        "BAD_PARAMS acquire_all: item.count must be an integer, got str");
  CHECK(refusal(PackArray(items(item(1, 1, Nil())))).empty());
  CHECK(refusal(PackArray(items(item(1, 1, Nil(), 1)))).empty());
  CHECK(refusal(PackArray(items(item(1, 1, Nil(), 1, 1)))) ==
        "BAD_PARAMS acquire_all: items.item takes at most 4 elements, got 5");
  CHECK(refusal(PackArray(items(item(1, 1, Nil(), 2)))) ==
        "BAD_PARAMS acquire_all: item.rate must be 0 or 1, got 2");
  // A token and a rate of one flow are two.
  CHECK(refusal(PackArray(items(item(1, 1, "a", 1), item(1, 1, "a", 0)))).empty());
  CHECK(refusal(PackArray(items(item(1, 1, Nil(), 1), item(1, 2, Nil(), 1)))) ==
        "BAD_PARAMS acquire_all: items must not hold flow_id 1 with the same param twice");
  CHECK(refusal(PackArray(items(item(1, 1, "\xff")))) ==
        "BAD_PARAMS acquire_all: item.param must be UTF-8");
  CHECK(refusal(PackArray(items(item(1, 1)), EmptyMap(), 1)) ==
        "BAD_PARAMS acquire_all takes at most 2 parameters, got 3");
  CHECK(refusal(PackArray(items(item(1, 1)), PackMap("param", "a"))) ==
        "BAD_PARAMS acquire_all: options.param is not known");
  CHECK(refusal(PackArray(items(item(1, 1)), PackMap("wait_ms", kWaitMsMax + 1))) ==
        "BAD_PARAMS acquire_all: options.wait_ms must be 0..3600000, got 3600001");
  // One flow may be there once for each value, and without a value.
  const std::string twice =
      "BAD_PARAMS acquire_all: items must not hold flow_id 5 with the same param twice";
  CHECK(refusal(PackArray(items(item(5, 1), item(4, 1), item(5, 2)))) == twice);
  CHECK(refusal(PackArray(items(item(5, 1, "a"), item(5, 1, "b"), item(5, 1, "a")))) == twice);
  CHECK(refusal(PackArray(items(item(5, 1, "a"), item(5, 1, 7), item(5, 1)))).empty());

  // What one request said is not left for the next.
  AcquireAllParams out;
  RequestError error;
  REQUIRE(DecodeAcquireAll(PackArray(items(item(1, 1), item(2, 1)), PackMap("wait_ms", 5)), &out,
                           &error));
  CHECK(out.wait_ms == 5);
  REQUIRE(DecodeAcquireAll(PackArray(items(item(3, 4, 7.5))), &out, &error));
  REQUIRE(out.items.size() == 1);
  CHECK(out.items[0].flow_id == 3);
  CHECK(out.items[0].count == 4);
  CHECK(out.items[0].param->type == ParamType::kDouble);
  CHECK_FALSE(out.wait_ms.has_value());
}

TEST_CASE("cancel wants a request id, which is not 0") {
  CHECK(RefusalOf(DecodeCancel, PackArray(0)) ==
        "BAD_PARAMS cancel: request_id must be above 0, got 0");
  CHECK(RefusalOf(DecodeCancel, PackArray()) == "BAD_PARAMS cancel: request_id is missing");
  CHECK(RefusalOf(DecodeCancel, PackArray("7")) ==
        "BAD_PARAMS cancel: request_id must be an integer, got str");
  CHECK(RefusalOf(DecodeCancel, PackArray(7, 8)) ==
        "BAD_PARAMS cancel takes at most 1 parameter, got 2");
}

TEST_CASE("release and keep take any unsigned number as a token id") {
  TokenParams out;
  RequestError error;
  REQUIRE(DecodeToken(Method::kRelease, PackArray(UINT64_MAX), &out, &error));
  CHECK(out.token_id == UINT64_MAX);
  CHECK(RefusalOf(DecodeToken, Method::kRelease, PackArray(-1)) ==
        "BAD_PARAMS release: token_id must fit an unsigned 64-bit integer");
  CHECK(RefusalOf(DecodeToken, Method::kKeep, PackArray()) ==
        "BAD_PARAMS keep: token_id is missing");
  CHECK(RefusalOf(DecodeToken, Method::kKeep, PackArray(1, 2)) ==
        "BAD_PARAMS keep takes at most 1 parameter, got 2");
}

TEST_CASE("a release says how its call ended, in one of three words") {
  const auto outcome_of = [](const std::string& params) {
    TokenParams out;
    RequestError error;
    REQUIRE(DecodeToken(Method::kRelease, params, &out, &error));
    CHECK(out.token_id == 7);
    return out.outcome;
  };
  CHECK(outcome_of(PackArray(7)) == CallOutcome::kOk);
  CHECK(outcome_of(PackArray(7, Nil())) == CallOutcome::kOk);
  CHECK(outcome_of(PackArray(7, EmptyMap())) == CallOutcome::kOk);
  CHECK(outcome_of(PackArray(7, PackMap("outcome", "ok"))) == CallOutcome::kOk);
  CHECK(outcome_of(PackArray(7, PackMap("outcome", "failed"))) == CallOutcome::kFailed);
  CHECK(outcome_of(PackArray(7, PackMap("outcome", "timeout"))) == CallOutcome::kTimeout);
  CHECK(RefusalOf(DecodeToken, Method::kRelease, PackArray(7, PackMap("outcome", "lost"))) ==
        "BAD_PARAMS release: options.outcome must be ok, failed or timeout, got 'lost'");
  CHECK(RefusalOf(DecodeToken, Method::kRelease, PackArray(7, PackMap("outcome", 1))) ==
        "BAD_PARAMS release: options.outcome must be a str, got int");
  CHECK(RefusalOf(DecodeToken, Method::kRelease, PackArray(7, PackMap("why", "ok"))) ==
        "BAD_PARAMS release: options.why is not known");
}

TEST_CASE("ping and info take nothing") {
  RequestError error;
  CHECK(DecodeNoParams(Method::kPing, PackArray(), &error));
  CHECK_FALSE(DecodeNoParams(Method::kInfo, PackArray(1), &error));
  CHECK(error.message == "info takes at most 0 parameters, got 1");
}

TEST_CASE("reclaim needs a reason") {
  CHECK(RefusalOf(DecodeReclaim, PackArray(5, "hung job")).empty());
  CHECK(RefusalOf(DecodeReclaim, PackArray(5)) == "BAD_PARAMS reclaim: reason is missing");
  CHECK(RefusalOf(DecodeReclaim, PackArray(5, "")) ==
        "BAD_PARAMS reclaim: reason must be 1..256 bytes, got 0");
  CHECK(RefusalOf(DecodeReclaim, PackArray(5, std::string(257, 'r'))) ==
        "BAD_PARAMS reclaim: reason must be 1..256 bytes, got 257");
  CHECK(RefusalOf(DecodeReclaim, PackArray(5, std::string(5000, 'r'))) ==
        "BAD_PARAMS reclaim: reason of 5000 bytes exceeds 4096");
}

TEST_CASE("a page has a default size and a largest one") {
  PageParams page;
  RequestError error;
  REQUIRE(DecodePage(Method::kFlows, PackArray(), &page, &error));
  CHECK(page.limit == kListRowsDefault);
  CHECK(page.cursor == 0);
  REQUIRE(DecodePage(Method::kFlows, PackArray(1000, 77), &page, &error));
  CHECK(page.limit == 1000);
  CHECK(page.cursor == 77);
  CHECK(RefusalOf(DecodePage, Method::kSessions, PackArray(0)) ==
        "BAD_PARAMS sessions: limit must be 1..1000, got 0");
  CHECK(RefusalOf(DecodePage, Method::kFlows, PackArray(1001)) ==
        "BAD_PARAMS flows: limit must be 1..1000, got 1001");
  CHECK(RefusalOf(DecodePage, Method::kFlows, PackArray(Nil(), "x")) ==
        "BAD_PARAMS flows: cursor must be an integer, got str");
}

TEST_CASE("tokens are filtered by flow, client, session and age") {
  TokensParams out;
  RequestError error;
  const std::string params =
      PackArray(Raw{Bytes("83") + Bytes("a7") + "flow_id\x6f" + Bytes("a9") + "client_id" +
                    Bytes("a8") + "worker-7" + Bytes("aa") + "min_age_ms" + Bytes("cd2710")},
                50, 9);
  REQUIRE(DecodeTokens(params, &out, &error));
  CHECK(out.flow_id == 111);
  CHECK(out.client_id == "worker-7");
  CHECK(out.min_age_ms == 10'000);
  CHECK(out.page.limit == 50);
  CHECK(out.page.cursor == 9);
  CHECK_FALSE(out.session.has_value());
  REQUIRE(DecodeTokens(PackArray(PackMap("session", 7)), &out, &error));
  CHECK(out.session == 7);
  CHECK(RefusalOf(DecodeTokens, PackArray(PackMap("session", -1))).starts_with("BAD_PARAMS"));
  REQUIRE(DecodeTokens(PackArray(), &out, &error));
  CHECK_FALSE(out.flow_id.has_value());
  CHECK(out.min_age_ms == 0);
  CHECK(RefusalOf(DecodeTokens, PackArray(PackMap("min_age_ms", -1))) ==
        "BAD_PARAMS tokens: filter.min_age_ms must not be negative");
  CHECK(RefusalOf(DecodeTokens, PackArray(PackMap("age", 1))) ==
        "BAD_PARAMS tokens: filter.age is not known");
}

TEST_CASE("rules_list may name a namespace") {
  RulesListParams out;
  RequestError error;
  const std::string params = PackArray("shop", 5, 111);
  REQUIRE(DecodeRulesList(params, &out, &error));
  CHECK(out.name_space == "shop");
  CHECK(out.page.limit == 5);
  REQUIRE(DecodeRulesList(PackArray(), &out, &error));
  CHECK_FALSE(out.name_space.has_value());
  CHECK_FALSE(RefusalOf(DecodeRulesList, PackArray("")).empty());
}

TEST_CASE("rules_load takes JSON text as it is and maps as the JSON they stand for") {
  RulesLoadParams out;
  RequestError error;
  const std::string text = "[{\"resource\":\"db\"}, // note\n]" + std::string(60'000, ' ');
  const std::string params = PackArray("shop", text);
  REQUIRE(DecodeRulesLoad(params, &out, &error));
  CHECK(out.name_space == "shop");
  CHECK(out.json == text);
  const std::string maps = PackArray(PackMap("count", 2), PackMap("resource", "d\"b"));
  REQUIRE(DecodeRulesLoad(PackArray("shop", Raw{maps}), &out, &error));
  CHECK(out.json == R"([{"count":2},{"resource":"d\"b"}])");
}

TEST_CASE("rules that cannot be JSON are refused") {
  CHECK(RefusalOf(DecodeRulesLoad, PackArray("shop")) == "BAD_PARAMS rules_load: rules is missing");
  CHECK(RefusalOf(DecodeRulesLoad, PackArray("shop", 5)) ==
        "BAD_PARAMS rules_load: rules must be an array of maps or one JSON str, got int");
  CHECK(RefusalOf(DecodeRulesLoad, PackArray("shop", Raw{Bytes("91 cb7ff8000000000000")})) ==
        "BAD_PARAMS rules_load: rules cannot be JSON: a float is NaN or infinite");
  CHECK(RefusalOf(DecodeRulesLoad, PackArray("shop", Raw{PackArray(std::vector<char>(2, 'b'))})) ==
        "BAD_PARAMS rules_load: rules cannot be JSON: a value is bin");
}

}  // namespace
}  // namespace nowcalls::wire
