// What a member knows of its cluster, and whether it may hand over.
#include "server/cluster/roster.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

namespace nowcalls::server {
namespace {

using cluster::MemberRecord;
using member::HeardMember;

HeardMember Standby(const std::string& name, uint64_t lag, int64_t silent_ms = 0) {
  return {.record = {.member = name, .address = name + ":1", .version = "1", .lag = lag},
          .silent_ms = silent_ms};
}

// The writer, "w", of which `own` tells as of now, and others as of a second ago.
struct Writer {
  void Hear(std::vector<HeardMember> others) {
    others.push_back({.record = {.member = "w", .address = "w:1", .applied = 8}, .silent_ms = 0});
    roster.Hear(std::move(others));
    roster.SetWriter("c", "w:1");
  }

  web::Board board;
  std::optional<MemberRecord> own =
      MemberRecord{.member = "w", .address = "w:1", .leads = true, .applied = 9, .synced = 7};
  Roster roster{"p", &board, [this] { return own; }};
};

TEST_CASE("the writer tells the members, itself as of now") {
  Writer writer;
  writer.board.cluster_term = 4;
  writer.board.cluster_log_bytes = 5'000;
  writer.board.cluster_log_bytes_max = 6'000;
  HeardMember former = Standby("a", 2, 300);
  former.record.leads = true;  // As it said before it handed over.
  writer.Hear({former});
  const wire::ClusterReply reply = writer.roster.Describe();
  CHECK(reply.cluster == "c");
  CHECK(reply.prefix == "p");
  CHECK(reply.term == 4);
  CHECK(reply.writer == "w:1");
  CHECK(reply.last_batch == 9);
  CHECK(reply.log_bytes == 5'000);
  CHECK(reply.log_bytes_max == 6'000);
  REQUIRE(reply.members.size() == 2);
  CHECK(reply.members[0].address == "a:1");
  CHECK_FALSE(reply.members[0].leads);
  CHECK(reply.members[0].lag == 2);
  CHECK(reply.members[0].silent_ms >= 300);
  CHECK(reply.members[1].leads);
  CHECK(reply.members[1].applied == 9);
  CHECK(reply.members[1].synced == 7);
  // The page has the same.
  REQUIRE(writer.board.cluster.Get() != nullptr);
  CHECK(writer.board.cluster.Get()->writer == "w:1");
  CHECK(writer.board.cluster_members == 2);
}

TEST_CASE("a writer hands over while one standby is there and near the end of the log") {
  Writer writer;
  CHECK(writer.roster.MayHandOver().code() == StatusCode::kResourceExhausted);
  const auto why = [&](std::vector<HeardMember> others) {
    writer.Hear(std::move(others));
    return writer.roster.MayHandOver().message();
  };
  CHECK(why({}) == "no other member of the cluster lives: start one before");
  CHECK(why({Standby("a", 257), Standby("b", 1'000)}) ==
        "no other member can take over now: a:1 lacks 257 batches (at most 256), b:1 lacks 1000 "
        "batches (at most 256); ask again later");
  CHECK(why({Standby("a", 0, 60'000)})
            .starts_with("no other member can take over now: a:1 has been silent for 6"));
  CHECK(why({Standby("a", 257), Standby("b", 256)}).empty());
}

}  // namespace
}  // namespace nowcalls::server
