// The lease of a claim: renewed, lost, and not answered about.
#include "member/claim_keeper.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>

#include "base/clock.h"
#include "member/presence.h"
#include "support/flaky_etcd.h"
#include "support/poll_until.h"

namespace nowcalls::member {
namespace {

using testing::kPatienceMs;
using testing::PollUntil;

struct Kept {
  testing::FlakyEtcd etcd;
  cluster::LeaseTime lease = *etcd.Grant(cluster::Lease::kTtlMs);
  std::atomic<int> told = 0;
  ClaimKeeper keeper{&etcd, lease, BoottimeMs(), [this](const std::string&) { ++told; }};
};

TEST_CASE("a lease that etcd has ended is over at once, and told once") {
  Kept kept;
  CHECK_FALSE(kept.keeper.over());
  kept.etcd.EndLease(kept.lease.id);
  CHECK(PollUntil(kPatienceMs, [&] { return kept.told == 1; }));
  CHECK(kept.keeper.over());
}

TEST_CASE("a lease that is not answered about is over before etcd ends it") {
  Kept kept;
  kept.etcd.SetAway(true);
  CHECK(PollUntil(kPatienceMs, [&] { return kept.keeper.over(); }));
  CHECK(PollUntil(kPatienceMs, [&] { return kept.told == 1; }));
  // Nobody takes a claim back that was over.
  kept.etcd.SetAway(false);
  CHECK(kept.keeper.over());
}

TEST_CASE("members hear of each other until they leave") {
  testing::FlakyEtcd etcd;
  const cluster::Keys keys = *cluster::Keys::Under("p");
  std::atomic<size_t> heard = 0;
  const auto presence = [&](const std::string& member) {
    return Presence::Calls{
        .record = [member] { return cluster::MemberRecord{.member = member, .leads = true}; },
        .members = [&](const auto& members) { heard = members.size(); }};
  };
  const Presence a(&etcd, &keys, presence("a"));
  {
    const Presence b(&etcd, &keys, presence("b"));
    CHECK(PollUntil(kPatienceMs, [&] { return heard == 2; }));
  }
  CHECK(PollUntil(kPatienceMs, [&] { return heard == 1; }));
}

TEST_CASE("a member that says nothing new is silent, though its lease lives") {
  testing::FlakyEtcd etcd;
  const cluster::Keys keys = *cluster::Keys::Under("p");
  const cluster::Txn speak{
      .then = {cluster::Put(keys.Member("b"), cluster::MemberRecord{.member = "b"}.ToJson())}};
  REQUIRE(etcd.Commit(speak).ok());
  std::atomic<int64_t> silent_ms = -1;
  std::atomic<int64_t> own_silent_ms = -1;
  const Presence a(&etcd, &keys,
                   {.record = [] { return cluster::MemberRecord{.member = "a"}; },
                    .members =
                        [&](const std::vector<HeardMember>& members) {
                          for (const auto& [record, ms] : members) {
                            (record.member == "b" ? silent_ms : own_silent_ms) = ms;
                          }
                        }});
  CHECK(PollUntil(kPatienceMs, [&] { return silent_ms >= 1'000; }));
  CHECK(own_silent_ms == 0);
  REQUIRE(etcd.Commit(speak).ok());
  CHECK(PollUntil(kPatienceMs, [&] { return silent_ms == 0; }));
  // Without etcd nobody is heard, and the figures say so.
  etcd.SetAway(true);
  CHECK(PollUntil(kPatienceMs, [&] { return silent_ms > 0 && own_silent_ms > 0; }));
}

}  // namespace
}  // namespace nowcalls::member
