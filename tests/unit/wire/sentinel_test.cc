// Sentinel's frames: where they end, what they ask, how answers look.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hex.h"
#include "base/prng.h"
#include "support/golden.h"
#include "test_paths.h"
#include "unit/allocation_counter.h"
#include "wire/sentinel/client_frames.h"
#include "wire/sentinel/frames.h"

namespace nowcalls::wire::sentinel {
namespace {

using Outcome = FrameSplitter::Outcome;

constexpr uint64_t kToken = 1234605616436508552;

const std::map<std::string, std::string>& Frames() {
  static const auto frames = testing::LoadGolden(testing::GoldenPath("sentinel_frames.hex"));
  return frames;
}

void CheckFrame(const std::string& name, const std::function<void(OutputBuffer*)>& encode) {
  CAPTURE(name);
  OutputBuffer out;
  encode(&out);
  REQUIRE(Frames().contains(name));
  CHECK(ToHex(out.view()) == ToHex(Frames().at(name)));
}

// The request of a golden frame.
Request RequestOf(const std::string& name) {
  CAPTURE(name);
  const std::string& frame = Frames().at(name);
  FrameSplitter splitter;
  size_t size = 0;
  REQUIRE(splitter.Next(frame, &size) == Outcome::kFrame);
  REQUIRE(size == frame.size());
  Request request;
  REQUIRE(DecodeRequest(std::string_view(frame).substr(kLengthBytes), &request));
  return request;
}

// The payloads of `stream`, which arrives in pieces that end where `next_piece` says; an oversized
// frame as "oversized".
std::vector<std::string> PayloadsOf(const std::string& stream,
                                    const std::function<size_t()>& next_piece) {
  std::vector<std::string> payloads;
  FrameSplitter splitter;
  std::string input;
  for (size_t at = 0; at < stream.size();) {
    const size_t piece = std::min(next_piece(), stream.size() - at);
    input += stream.substr(at, piece);
    at += piece;
    while (!input.empty()) {
      size_t size = 0;
      const Outcome outcome = splitter.Next(input, &size);
      if (outcome == Outcome::kIncomplete) break;
      REQUIRE(size > 0);
      REQUIRE(size <= input.size());
      if (outcome == Outcome::kFrame) payloads.push_back(input.substr(2, size - 2));
      if (outcome == Outcome::kOversized) payloads.emplace_back("oversized");
      input.erase(0, size);
    }
  }
  CHECK(input.empty());
  CHECK_FALSE(splitter.skipping());
  return payloads;
}

std::string FrameOf(const std::string& payload) {
  std::string frame;
  AppendBigEndian(&frame, static_cast<uint16_t>(payload.size()));
  return frame + payload;
}

TEST_CASE("a Sentinel client's requests are the golden bytes") {
  using Out = OutputBuffer;
  using enum RequestType;
  CheckFrame("ping", [](Out* o) { EncodePingRequest(0, "app", o); });
  CheckFrame("flow_short", [](Out* o) { EncodeShortCallRequest(7, kFlow, 111, 1, o); });
  CheckFrame("flow", [](Out* o) { EncodeCallRequest(7, kFlow, {111, 1}, o); });
  CheckFrame("flow_prioritized", [](Out* o) { EncodeCallRequest(8, kFlow, {111, 2, true}, o); });
  CheckFrame("acquire_short", [](Out* o) { EncodeShortCallRequest(7, kAcquire, 111, 1, o); });
  CheckFrame("acquire", [](Out* o) { EncodeCallRequest(7, kAcquire, {111, 1}, o); });
  CheckFrame("acquire_prioritized", [](Out* o) {
    EncodeCallRequest(8, kAcquire, {111, 2, true}, o);
  });
  CheckFrame("release", [](Out* o) { EncodeTokenRequest(10, kRelease, kToken, o); });
  CheckFrame("keep", [](Out* o) { EncodeTokenRequest(11, kKeep, kToken, o); });
  CheckFrame("param_flow", [](Out* o) {
    EncodeParamCallRequest(9, 222, 1, std::vector<Param>{{ParamType::kString, "ab"}}, o);
  });
}

TEST_CASE("the server reads the golden frames of Sentinel's clients") {
  std::string_view name_space;
  REQUIRE(DecodePing(RequestOf("ping").data, &name_space));
  CHECK(name_space == "app");
  for (const char* name : {"flow", "flow_short", "acquire", "acquire_short", "flow_trailing"}) {
    CallParams call;
    REQUIRE(DecodeCall(RequestOf(name).data, &call));
    CHECK(call.flow_id == 111);
    CHECK(call.count == 1);
    CHECK_FALSE(call.prioritized);
    CHECK(RequestOf(name).xid == 7);
  }
  for (const char* name : {"flow_prioritized", "acquire_prioritized"}) {
    CallParams call;
    REQUIRE(DecodeCall(RequestOf(name).data, &call));
    CHECK(call.count == 2);
    CHECK(call.prioritized);
  }
  for (const char* name : {"release", "keep", "release_trailing"}) {
    uint64_t token = 0;
    REQUIRE(DecodeToken(RequestOf(name).data, &token));
    CHECK(token == kToken);
  }
  CHECK(RequestOf("release").type == 4);
  CHECK(RequestOf("keep").type == 5);
  CHECK(RequestOf("type_minus_128").type == -128);
}

TEST_CASE("a Sentinel parameter has the type and the bytes that its client gave it") {
  ParamRoom room;
  ParamCallParams call;
  REQUIRE(DecodeParamCall(RequestOf("param_flow_types").data, &room, &call));
  CHECK(call.flow_id == 222);
  CHECK(call.count == 1);
  std::string shown;
  for (const Param& value : call.values) {
    shown += std::to_string(static_cast<int>(value.type)) + "=" + ToHex(value.bytes) + " ";
  }
  CHECK(shown ==
        "0=fffffffe 1=fffffffffffffffd 2=04 3=3ff8000000000000 4=bf000000 5=0006 6=01 7= ");
}

TEST_CASE("every byte but 0 is a true boolean, as Java reads it") {
  ParamRoom room;
  ParamCallParams call;
  for (int byte = 0; byte <= UINT8_MAX; ++byte) {
    const char value = static_cast<char>(byte);
    OutputBuffer out;
    EncodeParamCallRequest(1, 222, 1, std::vector<Param>{{ParamType::kBoolean, {&value, 1}}}, &out);
    Request request;
    REQUIRE(DecodeRequest(out.view().substr(kLengthBytes), &request));
    REQUIRE(DecodeParamCall(request.data, &room, &call));
    CHECK(call.values[0].bytes == std::string(1, byte == 0 ? '\0' : '\1'));
  }
}

TEST_CASE("a frame that is full of parameters is read to the last") {
  const std::string byte = "x";
  for (const size_t count : {kParamsMax - 1, kParamsMax}) {
    const std::vector<Param> values(count, {ParamType::kByte, byte});
    OutputBuffer out;
    EncodeParamCallRequest(1, 222, 1, values, &out);
    Request request;
    REQUIRE(DecodeRequest(out.view().substr(kLengthBytes), &request));
    ParamRoom room;
    ParamCallParams call;
    REQUIRE(DecodeParamCall(request.data, &room, &call));
    CHECK(call.values.size() == count);
    CHECK((call.values.back() == values.back()));
  }
}

TEST_CASE("the server's answers in Sentinel's frames are the golden bytes") {
  using Out = OutputBuffer;
  using enum TokenStatus;
  CheckFrame("ping_answer", [](Out* o) { EncodePing(0U, 1U, o); });
  for (const uint32_t connected : {127U, 128U, 255U, 256U, UINT32_MAX}) {
    CheckFrame("answer_ping_many", [=](Out* o) { EncodePing(0U, connected, o); });
  }
  CheckFrame("ping_empty_answer", [](Out* o) { EncodeRefusal(0, 0, kFail, o); });
  CheckFrame("flow_answer", [](Out* o) { EncodeRate(7, RequestType::kFlow, kOk, 4, 0, o); });
  CheckFrame("param_flow_types_answer",
             [](Out* o) { EncodeRate(9, RequestType::kParamFlow, kOk, -1, 0, o); });
  CheckFrame("answer_flow_should_wait",
             [](Out* o) { EncodeRate(8, RequestType::kFlow, kShouldWait, 0, 100, o); });
  CheckFrame("answer_flow_blocked",
             [](Out* o) { EncodeRate(7, RequestType::kFlow, kBlocked, 0, 0, o); });
  CheckFrame("answer_flow_too_many", [](Out* o) { EncodeRefusal(7, 1, kTooManyRequest, o); });
  CheckFrame("answer_flow_no_rule", [](Out* o) { EncodeRefusal(7, 1, kNoRuleExists, o); });
  CheckFrame("answer_acquire_ok", [](Out* o) { EncodeAcquire(7, kOk, kToken, o); });
  CheckFrame("answer_acquire_blocked", [](Out* o) { EncodeAcquire(7, kBlocked, 0, o); });
  CheckFrame("answer_release_ok", [](Out* o) { EncodeStatus(10, 4, kReleaseOk, o); });
  CheckFrame("answer_keep_ok", [](Out* o) { EncodeStatus(11, 5, kOk, o); });
  CheckFrame("type_127_answer", [](Out* o) { EncodeRefusal(12, 127, kFail, o); });
}

TEST_CASE("a Sentinel client reads the golden answers, and no part of one") {
  int answers = 0;
  for (const auto& frame : Frames()) {
    const std::string& name = frame.first;
    const std::string_view bytes = frame.second;
    if (name.find("answer") == std::string::npos || name == "segment_answer") continue;
    CAPTURE(name);
    Response response;
    for (size_t size = 0; size < bytes.size(); ++size) {
      std::string_view part = bytes.substr(0, size);
      CHECK(TakeResponse(&part, &response) == Answer::kIncomplete);
    }
    std::string_view whole = bytes;
    CHECK(TakeResponse(&whole, &response) == Answer::kWhole);
    CHECK(whole.empty());
    ++answers;
  }
  CHECK(answers > 50);
  Response response;
  std::string_view granted = Frames().at("answer_acquire_ok");
  REQUIRE(TakeResponse(&granted, &response) == Answer::kWhole);
  CHECK(response.xid == 7);
  CHECK(response.type == 3);
  CHECK(response.status == TokenStatus::kOk);
  CHECK(response.token_id() == kToken);
  std::string_view waits = Frames().at("answer_flow_should_wait");
  REQUIRE(TakeResponse(&waits, &response) == Answer::kWhole);
  CHECK(response.count() == 0);
  CHECK(response.wait_ms() == 100);
}

TEST_CASE("a response that no server sends is malformed") {
  for (const std::string& bytes : {FrameOf(std::string(5, 'x')), FrameOf(std::string(1023, 'x'))}) {
    std::string_view input = bytes;
    Response response;
    CHECK(TakeResponse(&input, &response) == Answer::kMalformed);
  }
}

TEST_CASE("frames are found however their bytes arrive, and oversized ones are skipped") {
  const std::vector<std::string> payloads = {
      "", "x", std::string(kPayloadBytesMax, 'a'), "", std::string(255, 'b'), "oversized", "last"};
  std::string stream;
  for (const std::string& payload : payloads) {
    stream += FrameOf(payload == "oversized" ? std::string(kPayloadBytesMax + 1, 'c') : payload);
  }
  for (size_t piece = 1; piece < 40; ++piece) {
    CHECK((PayloadsOf(stream, [=] { return piece; }) == payloads));
  }
  CHECK((PayloadsOf(stream, [&] { return stream.size(); }) == payloads));
  Prng prng(7);
  for (int i = 0; i < 200; ++i) {
    CHECK((PayloadsOf(stream, [&] { return 1 + prng.Below(300); }) == payloads));
  }
}

TEST_CASE("a frame of every length is a frame up to 1022 bytes, and skipped beyond") {
  for (size_t size : {size_t{1021}, size_t{1022}, size_t{1023}, size_t{1024}, size_t{65'535}}) {
    const std::string payload(size, 'x');
    const std::vector<std::string> expected = {size <= kPayloadBytesMax ? payload : "oversized",
                                               "next"};
    const std::string stream = FrameOf(payload) + FrameOf("next");
    CHECK((PayloadsOf(stream, [&] { return stream.size(); }) == expected));
    CHECK((PayloadsOf(stream, [] { return size_t{1000}; }) == expected));
  }
}

// Lines of the form "    WHAT   00 06 ...".
TEST_CASE("SENTINEL.md quotes golden bytes and no others") {
  std::set<std::string> golden;
  for (const auto& [name, bytes] : Frames()) golden.insert(ToHex(bytes));
  std::ifstream document(NOWCALLS_SOURCE_DIR "/src/wire/SENTINEL.md");
  int quoted = 0;
  for (std::string line; std::getline(document, line);) {
    if (!line.starts_with("    ") || line.find("   00 ") == std::string::npos) continue;
    std::string digits = line.substr(line.find("   00 "));
    std::erase(digits, ' ');
    CAPTURE(line);
    CHECK(golden.contains(digits));
    ++quoted;
  }
  CHECK(quoted == 9);
}

TEST_CASE("Sentinel's frames are read and answered without an allocation") {
  std::string stream;
  for (const auto& [name, bytes] : Frames()) stream += bytes;
  OutputBuffer out;
  out.Append(std::string(stream.size() * 16, 'x'));
  out.Clear();
  ParamRoom room;
  int frames = 0;
  const int64_t before = testing::Allocations();
  FrameSplitter splitter;
  size_t size = 0;
  for (std::string_view rest = stream; !rest.empty(); rest.remove_prefix(size)) {
    if (splitter.Next(rest, &size) != Outcome::kFrame) break;
    Request request;
    DecodeRequest(rest.substr(kLengthBytes, size - kLengthBytes), &request);
    std::string_view name_space;
    CallParams call;
    ParamCallParams params;
    uint64_t token = 0;
    DecodePing(request.data, &name_space);
    DecodeCall(request.data, &call);
    DecodeParamCall(request.data, &room, &params);
    DecodeToken(request.data, &token);
    EncodeRefusal(request.xid, request.type, TokenStatus::kBadRequest, &out);
    ++frames;
  }
  const int64_t after = testing::Allocations();
  CHECK(frames > 100);
  CHECK(after == before);
}

}  // namespace
}  // namespace nowcalls::wire::sentinel
