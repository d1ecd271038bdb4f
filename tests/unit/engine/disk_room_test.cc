#include "engine/disk_room.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/engine_harness.h"
#include "wire/json.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::EngineReply;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;

Limits Watermarks(uint64_t low_bytes, uint64_t high_bytes) {
  Limits limits;
  limits.disk_free_low_bytes = low_bytes;
  limits.disk_free_high_bytes = high_bytes;
  return limits;
}

TEST_CASE("between the watermarks stays what was, and each change is told once") {
  DiskRoom room(Watermarks(100, 150));
  CHECK(room.Update(100).empty());
  CHECK_FALSE(room.low());
  CHECK(room.Update(99) ==
        "only 99 bytes are free for the ledger, fewer than disk-free-low-bytes (100): no token is "
        "granted until 150 are free; tokens that are out can be kept and released. Make room on "
        "that disk");
  CHECK(room.low());
  CHECK(room.Update(149).empty());
  CHECK(room.Update(0).empty());
  CHECK(room.low());
  CHECK(room.Update(150) == "150 bytes are free for the ledger again: tokens are granted");
  CHECK_FALSE(room.low());
  CHECK(room.Update(100).empty());
  CHECK_FALSE(room.low());
}

TEST_CASE("a disk that does not tell what is free changes nothing") {
  DiskRoom room(Watermarks(100, 150));
  CHECK(room.Update(std::nullopt).empty());
  CHECK_FALSE(room.low());
  CHECK_FALSE(room.Update(5).empty());
  CHECK(room.Update(std::nullopt).empty());
  CHECK(room.low());
  CHECK_FALSE(room.free_bytes().has_value());
}

TEST_CASE("a low watermark of 0 never refuses, and without a high one it is a quarter more") {
  DiskRoom none(Watermarks(0, 0));
  CHECK(none.Update(0).empty());
  CHECK_FALSE(none.low());
  DiskRoom room(Watermarks(400, 0));
  CHECK_FALSE(room.Update(399).empty());
  CHECK(room.Update(499).empty());
  CHECK_FALSE(room.Update(500).empty());
}

TEST_CASE("a disk that has hardly any inodes is low too, and the line names them") {
  DiskRoom room(Watermarks(100, 150));
  CHECK(room.Update(1000, DiskRoom::kFilesLow).empty());
  CHECK(room.Update(1000, DiskRoom::kFilesLow - 1) ==
        "only 63 inodes are free on the ledger's file system, fewer than 64: no token is granted "
        "until 128 are free; tokens that are out can be kept and released. Delete files on that "
        "disk");
  CHECK(room.low());
  CHECK(room.Update(1000, DiskRoom::kFilesHigh - 1).empty());
  CHECK(room.Update(1000, DiskRoom::kFilesHigh) ==
        "1000 bytes are free for the ledger again: tokens are granted");
  // A file system without inodes, and a server that is never to refuse for its disk.
  CHECK(room.Update(1000).empty());
  DiskRoom none(Watermarks(0, 0));
  CHECK(none.Update(1000, 0).empty());
}

TEST_CASE("bytes that come back end what they began, though inodes are between their marks") {
  DiskRoom room(Watermarks(100, 150));
  CHECK_FALSE(room.Update(40, DiskRoom::kFilesHigh - 1).empty());
  CHECK_FALSE(room.Update(150, DiskRoom::kFilesHigh - 1).empty());
  CHECK_FALSE(room.low());
}

TEST_CASE("a nearly full disk refuses acquires by name, in the log once, and shows in info") {
  EngineHarness h(Watermarks(100, 150));
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  const uint64_t token = h.Take(c);
  const auto info = [&] {
    const EngineReply reply = h.Call(c, PlainRequest(7, Method::kInfo));
    return *wire::JsonFromMessagePack(reply.result);
  };
  CHECK(info()["ledger"]["disk_free_bytes"].is_null());
  CHECK(h.driver().TakeLog().empty());
  h.engine().OnDiskSpace(40);
  h.engine().OnDiskSpace(30);
  const std::string log = h.driver().TakeLog();
  CHECK(log.starts_with("warn: only 40 bytes are free for the ledger"));
  CHECK(log.find('\n') == log.size() - 1);
  const wire::AcquireReply refused = h.Call(c, AcquireRequest(2, 1)).acquire();
  CHECK(refused.status == TokenStatus::kTooManyRequest);
  CHECK(refused.refused_by == RefusedBy::kDiskLow);
  CHECK(h.Call(c, TokenRequest(3, Method::kKeep, token)).keep().status == TokenStatus::kOk);
  CHECK(h.Call(c, TokenRequest(4, Method::kRelease, token)).status() == TokenStatus::kReleaseOk);
  auto told = info();
  CHECK(told["ledger"]["disk_free_bytes"] == 30);
  CHECK(told["ledger"]["disk_low"] == true);
  CHECK(told["limits"]["disk_free_low_bytes"] == 100);
  CHECK(told["limits"]["disk_free_high_bytes"] == 150);
  CHECK(told["totals"]["refused"]["disk_low"] == 1);
  h.engine().OnDiskSpace(150);
  CHECK(h.driver().TakeLog() ==
        "warn: 150 bytes are free for the ledger again: tokens are granted\n");
  CHECK(h.Call(c, AcquireRequest(5, 1)).acquire().status == TokenStatus::kOk);
  CHECK(info()["ledger"]["disk_low"] == false);
}

TEST_CASE("watermarks that change while the server runs hold at once, for what is free already") {
  EngineHarness h(Watermarks(100, 150));
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  h.engine().OnDiskSpace(120);
  h.Take(c);
  core::CoreOptions options;
  options.limits = Watermarks(130, 160);
  h.engine().SetOptions(options);
  CHECK(h.Call(c, AcquireRequest(2, 1)).acquire().refused_by == RefusedBy::kDiskLow);
  options.limits = Watermarks(50, 60);
  h.engine().SetOptions(options);
  CHECK(h.Call(c, AcquireRequest(3, 1)).acquire().status == TokenStatus::kOk);
}

TEST_CASE("who waits for room is refused when its turn comes while the disk is nearly full") {
  EngineHarness h(Watermarks(100, 150), {{.flow = 1, .count = 1}});
  const ConnectionId holder = h.Connect();
  h.Call(holder, HelloRequest(1, "default", "a"));
  const uint64_t token = h.Take(holder);
  const ConnectionId waiter = h.Connect("127.0.0.1:2");
  h.Call(waiter, HelloRequest(1, "default", "b"));
  wire::OutputBuffer request;
  wire::EncodeAcquireRequest(2, {.flow_id = 1, .count = 1, .wait_ms = 60'000}, &request);
  h.Send(waiter, request.view());
  h.Settle();
  REQUIRE(h.core().wait_queues().size() == 1);
  h.engine().OnDiskSpace(40);
  h.Settle();
  CHECK(h.core().wait_queues().size() == 1);
  h.Call(holder, TokenRequest(3, Method::kRelease, token));
  h.Settle();
  const auto replies = h.TakeReplies(waiter);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].acquire().refused_by == RefusedBy::kDiskLow);
}

}  // namespace
}  // namespace nowcalls::engine
