#include "server/rules/etcd_document.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "support/fake_etcd.h"

namespace nowcalls::server {
namespace {

using Outcome = Fetched::Outcome;

// Counts what is asked; fails as it is told.
class CountingEtcd final : public testing::FakeEtcd {
 public:
  Result<cluster::TxnReply> Commit(const cluster::Txn& txn) override {
    ++commits;
    if (!fails.ok()) return fails;
    Result<cluster::TxnReply> reply = FakeEtcd::Commit(txn);
    values += static_cast<int>(reply->found.size());
    return reply;
  }
  void AwaitChange(const std::string& key, int64_t revision, int64_t wait_ms) override {
    ++waits;
    CHECK(key == "/k");
    waited_behind = revision;
    CHECK(wait_ms == EtcdDocument::kWaitMs);
  }
  void EndWait() override { ++ends; }

  void Put(const std::string& value) {
    REQUIRE(FakeEtcd::Commit({.then = {cluster::Put("/k", value)}}).ok());
  }
  void Delete() { REQUIRE(FakeEtcd::Commit({.then = {cluster::DeleteRange("/k", "")}}).ok()); }

  Status fails;
  int commits = 0;
  int values = 0;
  int waits = 0;
  int64_t waited_behind = 0;
  int ends = 0;
};

struct WatchedKey {
  explicit WatchedKey(size_t endpoints = 1) {
    auto made = std::make_unique<CountingEtcd>();
    etcd = made.get();
    document = std::make_unique<EtcdDocument>(std::move(made), endpoints, "/k");
  }
  Fetched Fetch(bool again = false) const { return document->Fetch(again); }

  CountingEtcd* etcd;
  std::unique_ptr<EtcdDocument> document;
};

TEST_CASE("a key is read once for each change, and waited for in between") {
  const WatchedKey key;
  key.etcd->Put("a");
  CHECK(key.Fetch().text == "a");
  CHECK(key.etcd->waits == 0);
  CHECK(key.Fetch().outcome == Outcome::kUnchanged);
  CHECK(key.etcd->waits == 1);
  CHECK(key.etcd->waited_behind == key.etcd->revision());
  CHECK(key.etcd->values == 1);
  key.etcd->Put("b");
  CHECK(key.Fetch().text == "b");
  CHECK(key.etcd->waits == 2);
  // Somebody asks, and does not wait.
  CHECK(key.Fetch(/*again=*/true).text == "b");
  CHECK(key.etcd->waits == 2);
}

TEST_CASE("a key that was deleted and put again is another") {
  const WatchedKey key;
  key.etcd->Put("a");
  REQUIRE(key.Fetch().outcome == Outcome::kRead);
  key.etcd->Delete();
  key.etcd->Put("b");
  CHECK(key.Fetch().text == "b");
  key.etcd->Delete();
  const Fetched gone = key.Fetch(/*again=*/true);
  CHECK(gone.outcome == Outcome::kFailed);
  CHECK(gone.problem == "is not there: etcd has no such key");
  key.etcd->Put("a");
  CHECK(key.Fetch().outcome == Outcome::kRead);
  CHECK(key.etcd->waits == 1);
}

TEST_CASE("a failure has the same words at each endpoint, and all are asked") {
  const WatchedKey key(/*endpoints=*/3);
  key.etcd->Put("a");
  REQUIRE(key.Fetch().outcome == Outcome::kRead);
  key.etcd->commits = 0;
  key.etcd->fails = Status::Unavailable("etcd at x:1 cannot be reached");
  const Fetched away = key.Fetch();
  CHECK(away.outcome == Outcome::kFailed);
  CHECK(away.problem == "cannot be read: etcd does not answer");
  CHECK(away.pause_ms == EtcdDocument::kFailurePauseMs);
  CHECK(key.etcd->commits == 6);
  key.etcd->fails = Status::OutcomeUnknown("etcd at y:1: deadline exceeded");
  CHECK(key.Fetch().problem == away.problem);
  key.etcd->fails = Status::PermissionDenied("etcd at x:1: no");
  CHECK(key.Fetch().problem ==
        "cannot be read: etcd denies it (cluster-user, cluster-password-file)");
  // What was read before may have changed.
  key.etcd->fails = {};
  CHECK(key.Fetch().outcome == Outcome::kRead);
}

TEST_CASE("an interrupt ends the next look, and no other") {
  const WatchedKey key;
  key.etcd->Put("a");
  key.document->Interrupt();
  CHECK(key.etcd->ends == 1);
  CHECK(key.Fetch().outcome == Outcome::kInterrupted);
  CHECK(key.Fetch().outcome == Outcome::kRead);
}

}  // namespace
}  // namespace nowcalls::server
