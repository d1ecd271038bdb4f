// What a client makes of answers: those of later servers, and those that are no answers.
#include "wire/client_messages.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/hex.h"
#include "base/limits.h"
#include "base/prng.h"
#include "unit/wire/pack.h"
#include "wire/rows.h"
#include "wire/splitter.h"

namespace nowcalls::wire {
namespace {

// One pair of a map.
template <typename T>
std::string Pair(std::string_view key, const T& value) {
  return PackMap(key, value).bytes.substr(1);
}

TEST_CASE("answers of later versions, with more behind, are understood") {
  CHECK(DecodeHelloReply(PackArray("9.0", 1, 2, 3, "more", 5))->resumed_tokens == 3);
  CHECK(DecodeAcquireReply(PackArray(0, 5, 6, 1, 2, 4000, Nil(), EmptyMap()))->token_id == 5);
  CHECK(*DecodeStatusReply(PackArray(6, "more")) == TokenStatus::kReleaseOk);
  CHECK(DecodeKeepReply(PackArray(0, 4000, Nil()))->hold_ms == 4000);
  CHECK(*DecodeUintReply(PackArray(77, 78)) == 77);
  const std::string response = PackArray(1, 7, Nil(), std::vector<int>{6}, "more");
  CHECK(DecodeResponse(response)->msgid == 7);
}

// As clients take whatever comes.
CommonReply TakeInGeneral(std::string_view message) {
  MessageSplitter splitter;
  size_t size = 0;
  REQUIRE(splitter.Next(message, &size) == MessageSplitter::Outcome::kMessage);
  REQUIRE(size == message.size());
  const Result<Response> response = DecodeResponse(message);
  REQUIRE(response.ok());
  REQUIRE_FALSE(response->error.has_value());
  if (const auto acquired = DecodeAcquireReply(response->result); acquired.ok()) {
    return {response->msgid, acquired->status, acquired->refused_by, acquired->token_id};
  }
  const Result<TokenStatus> status = DecodeStatusReply(response->result);
  REQUIRE(status.ok());
  return {response->msgid, *status};
}

// Takes one common answer off the front of `bytes`, which decoders in general must take alike.
bool TakesCommon(std::string_view bytes) {
  std::string_view rest = bytes;
  CommonReply reply;
  if (!TakeCommonReply(&rest, &reply)) {
    CHECK(rest == bytes);
    return false;
  }
  const CommonReply same = TakeInGeneral(bytes.substr(0, bytes.size() - rest.size()));
  CHECK(reply.msgid == same.msgid);
  CHECK(reply.status == same.status);
  if (reply.status == TokenStatus::kReleaseOk) return true;
  CHECK(reply.refused_by == same.refused_by);
  CHECK(reply.token_id == same.token_id);
  return true;
}

constexpr uint64_t kNumbers[] = {
    0, 1, 127, 128, 255, 256, 65'535, 65'536, UINT32_MAX, uint64_t{1} << 32, INT64_MAX};

std::vector<std::string> CommonReplies() {
  std::vector<std::string> replies;
  for (const uint64_t number : kNumbers) {
    OutputBuffer out;
    const auto msgid = static_cast<uint32_t>(number);
    EncodeAcquire(msgid, {TokenStatus::kOk, number, number, number, number, number}, &out);
    replies.emplace_back(out.view());
    out.Clear();
    EncodeAcquire(msgid, {TokenStatus::kBlocked, 0, 0, number, number, 0, RefusedBy::kLevel}, &out);
    replies.emplace_back(out.view());
    out.Clear();
    EncodeStatus(msgid, TokenStatus::kReleaseOk, &out);
    replies.emplace_back(out.view());
  }
  return replies;
}

TEST_CASE("a grant, a refusal and a release are taken in one pass as the decoders take them") {
  for (const std::string& reply : CommonReplies()) {
    CAPTURE(ToHex(reply));
    CHECK(TakesCommon(reply));
    CHECK(TakesCommon(reply + "\x94"));
    for (size_t size = 0; size < reply.size(); ++size) {
      CHECK_FALSE(TakesCommon(std::string_view(reply).substr(0, size)));
    }
  }
}

TEST_CASE("whatever bytes are taken in one pass the decoders take alike") {
  Prng prng(1);
  int taken = 0;
  for (int run = 0; run < 300; ++run) {
    for (std::string reply : CommonReplies()) {
      reply[prng.Below(reply.size())] = static_cast<char>(prng.Next());
      CAPTURE(ToHex(reply));
      if (TakesCommon(reply)) ++taken;
    }
  }
  CHECK(taken > 1000);
}

TEST_CASE("answers in other forms are left to the decoders") {
  const auto result = [](const auto&... values) { return Raw{PackArray(values...)}; };
  for (const std::string& message : {
           PackArray(1, 7, "error", Nil()),
           PackArray(0, 7, Nil(), result(6)),
           PackArray(1, uint64_t{1} << 32, Nil(), result(6)),
           PackArray(1, 7, Nil(), result(7)),
           PackArray(1, 7, Nil(), result(6, "more")),
           PackArray(1, 7, Nil(), result(6), "more"),
           PackArray(1, 7, Nil(), result(0, 5, 6, 1, 2, 4000)),
           PackArray(1, 7, Nil(), result(0, 5, 6, 1, 2, 4000, Nil(), "more")),
           PackArray(1, 7, Nil(), result(0, -5, 6, 1, 2, 4000, Nil())),
           PackArray(1, 7, Nil(), result(-2, 0, 0, 5, 5, 0, "token_limit")),
           PackArray(1, 7, Nil(), result(1, 0, 0, 5, 5, 0, std::string(32, 'x'))),
       }) {
    CAPTURE(ToHex(message));
    CHECK_FALSE(TakesCommon(message));
  }
}

TEST_CASE("acquires and releases are encoded as msgpack-c would") {
  for (const uint64_t number : kNumbers) {
    CAPTURE(number);
    const auto msgid = static_cast<uint32_t>(number);
    const auto flow = static_cast<int64_t>(number);
    OutputBuffer out;
    EncodeAcquireRequest(msgid, {.flow_id = flow, .count = flow}, &out);
    CHECK(out.view() == PackArray(0, msgid, "acquire", std::vector<int64_t>{flow, flow}));
    out.Clear();
    EncodeAcquireRequest(msgid, {.flow_id = -flow, .count = 1}, &out);
    CHECK(out.view() == PackArray(0, msgid, "acquire", std::vector<int64_t>{-flow, 1}));
    out.Clear();
    EncodeAcquireRequest(msgid, {.flow_id = 1, .count = -flow}, &out);
    CHECK(out.view() == PackArray(0, msgid, "acquire", std::vector<int64_t>{1, -flow}));
    out.Clear();
    EncodeAcquireRequest(msgid, {.flow_id = flow, .count = 1, .request_id = number}, &out);
    const std::map<std::string, uint64_t> id = {{"request_id", number}};
    CHECK(out.view() == (number == 0
                             ? PackArray(0, msgid, "acquire", std::vector<int64_t>{flow, 1})
                             : PackArray(0, msgid, "acquire", Raw{PackArray(flow, 1, id)})));
    out.Clear();
    EncodeTokenRequest(msgid, Method::kRelease, number, &out);
    CHECK(out.view() == PackArray(0, msgid, "release", std::vector<uint64_t>{number}));
    out.Clear();
    EncodeTokenRequest(msgid, Method::kKeep, UINT64_MAX, &out);
    CHECK(out.view() == PackArray(0, msgid, "keep", std::vector<uint64_t>{UINT64_MAX}));
  }
}

TEST_CASE("a limit that this client does not know is still a refusal") {
  const Result<AcquireReply> reply = DecodeAcquireReply(PackArray(1, 0, 0, 5, 5, 0, "moon"));
  REQUIRE(reply.ok());
  CHECK(reply->refused_by == RefusedBy::kOther);
  CHECK(RefusedByName(reply->refused_by) == "other");
}

TEST_CASE("an error that this client does not know keeps its name") {
  const std::string message = PackArray(1, 7, Raw{PackArray(55, "FORBIDDEN", "not you", 1)}, Nil());
  const Result<Response> response = DecodeResponse(message);
  REQUIRE(response.ok());
  REQUIRE(response->error.has_value());
  CHECK(response->error->code == ErrorCode::kInternal);
  CHECK(response->error->message == "FORBIDDEN: not you");
}

TEST_CASE("what is no answer is corrupt, and the message says where") {
  const auto why = [](const auto& result) {
    CHECK(result.status().code() == StatusCode::kCorruption);
    return result.status().message();
  };
  CHECK(why(DecodeResponse(PackArray(0, 1, "ping", std::vector<int>()))) ==
        "response: type must be 1 (response)");
  CHECK(why(DecodeResponse(PackArray(1, "7", Nil(), Nil()))) ==
        "response: msgid must be an integer, got str");
  CHECK(why(DecodeResponse(PackArray(1, uint64_t{1} << 32, Nil(), Nil()))) ==
        "response: msgid must fit an unsigned 32-bit integer");
  CHECK(why(DecodeResponse(PackArray(1, 7, Nil()))) == "response: result is missing");
  CHECK(why(DecodeResponse(PackArray(1, 7, "broken", Nil()))) ==
        "error: it must be an array, got str");
  CHECK(why(DecodeStatusReply(PackArray(42))) == "status answer: status 42 is not known");
  CHECK(why(DecodeStatusReply(PackArray(256))) == "status answer: status 256 is not known");
  CHECK(why(DecodeAcquireReply(PackArray(0, 5))) == "acquire answer: fence is missing");
  CHECK(why(DecodeUintReply(PackArray(1) + "\x01")) == "answer: it is followed by stray bytes");
  CHECK(why(DecodeKeepReply("\xc0")) == "keep answer: it must be an array, got nil");
  CHECK(why(DecodeKeepReply("")) == "keep answer: it is cut off");
}

TEST_CASE("rows may hold keys that this client does not know, and may lack others") {
  const std::string row = "\x84" + Pair("flow_id", 5) + Pair("future", Raw{PackArray(EmptyMap())}) +
                          Pair("level", Nil()) +
                          Pair("counters", Raw{"\x82" + Pair("ended", PackMap("moved", 1)) +
                                               Pair("refused", PackMap("moon", 2))});
  const Result<FlowRow> flow = DecodeFlowRow(row);
  REQUIRE(flow.ok());
  CHECK(flow->flow_id == 5);
  CHECK_FALSE(flow->level.has_value());
  CHECK(flow->counters == FlowCounters{});
}

TEST_CASE("a map that does not name its row is no row") {
  CHECK(DecodeTokenPage(PackArray(Raw{PackArray(PackMap("count", 2))}, Nil())).status().message() ==
        "tokens answer: rows.token_id is missing in a row");
  CHECK(DecodeFlowRow(EmptyMap().bytes).status().message() ==
        "flow answer: flow_id is missing in a row");
}

TEST_CASE("a row with a wrong value is corrupt") {
  const std::string page = PackArray(Raw{PackArray(PackMap("count", "2"))}, Nil());
  CHECK(DecodeTokenPage(page).status().message() ==
        "tokens answer: row.count must be an integer, got str");
  const std::string wide = PackArray(Raw{PackArray(PackMap("count", uint64_t{1} << 32))}, Nil());
  CHECK(DecodeTokenPage(wide).status().message() ==
        "tokens answer: row.count must fit an unsigned 32-bit integer");
  CHECK(DecodeSessionPage(PackArray(EmptyMap(), Nil())).status().message() ==
        "sessions answer: rows must be an array, got map");
}

TEST_CASE("a listing that claims more rows than it has is refused at once") {
  const std::string page = Bytes("92 ddffffffff");
  CHECK(DecodeTokenPage(page).status().code() == StatusCode::kCorruption);
}

TEST_CASE("the largest page that rows allow fits a client's limit") {
  FlowRow row;
  row.flow_id = INT64_MAX;
  row.name_space = std::string(kNamespaceBytesMax, 'n');
  row.resource = std::string(kResourceBytesMax, 'r');
  row.level = row.now_calls = row.tokens = UINT64_MAX;
  row.waiters = row.sessions = UINT64_MAX;
  row.oldest_issued_ms = INT64_MAX;
  row.waiting_since_ms = INT64_MAX;
  FlowCounters& counters = row.counters.emplace();
  counters.granted = counters.queued = counters.granted_from_queue = UINT64_MAX;
  counters.longest_wait_ms = counters.kept = UINT64_MAX;
  counters.held.p50_ms = counters.held.p90_ms = UINT64_MAX;
  counters.held.p99_ms = counters.held.longest_ms = UINT64_MAX;
  counters.held.sum_ms = counters.held.count = UINT64_MAX;
  counters.waited.p50_ms = counters.waited.p90_ms = counters.waited.p99_ms = UINT64_MAX;
  counters.waited.sum_ms = counters.waited.count = UINT64_MAX;
  counters.held.upto.fill(UINT64_MAX);
  counters.waited.upto.fill(UINT64_MAX);
  for (size_t i = 1; i < std::size(counters.ended); ++i) counters.ended[i] = UINT64_MAX;
  for (size_t i = 1; i < std::size(counters.refused); ++i) {
    if (RefusedByName(static_cast<RefusedBy>(i)).empty()) continue;
    counters.refused[i] = counters.shadow_refused[i] = UINT64_MAX;
  }
  const std::vector<FlowRow> rows(kListRowsMax, row);
  OutputBuffer out;
  EncodeFlowPage(1, rows, UINT64_MAX, &out);
  CHECK(out.size() <= kReplyBytesMax);
  MessageSplitter splitter(kReplyBytesMax);
  size_t size = 0;
  REQUIRE(splitter.Next(out.view(), &size) == MessageSplitter::Outcome::kMessage);
  const Result<Response> response = DecodeResponse(out.view());
  REQUIRE(response.ok());
  CHECK(DecodeFlowPage(response->result)->rows == rows);
}

}  // namespace
}  // namespace nowcalls::wire
