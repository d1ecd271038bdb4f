#include "server/commit/commit_thread.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "server/threads/scan_thread.h"
#include "store/memory_store.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

using store::Durability;

// A memory store that counts syncs and fails when told to.
class WatchedStore : public store::MemoryStore {
 public:
  WatchedStore() : MemoryStore(ledger::Format{}) {}

  Status Append(const ledger::SealedBatch& batch) override {
    if (fail_commits) return Status::IoError("no space");
    if (until_commit_ends) until_commit_ends();
    const int64_t began_ms = BoottimeMs();
    testing::PollUntil(commit_takes_ms, [&] { return BoottimeMs() >= began_ms + commit_takes_ms; });
    committed_on = std::this_thread::get_id();
    ++commits;
    return MemoryStore::Append(batch);
  }
  Status CommitTelling(const ledger::SealedBatch& batch,
                       const std::function<void()>& durable) override {
    if (!until_applied) return MemoryStore::CommitTelling(batch, durable);
    Status status = MemoryStore::CommitTelling(batch, {});
    if (durable) durable();
    until_applied();
    ++applied;
    return status;
  }
  Status Sync() override {
    ++syncs;
    synced_commits = commits.load();
    return fail_syncs ? Status::IoError("bad sector") : Status::Ok();
  }

  std::optional<uint64_t> FreeBytes() override {
    if (free_bytes == 0) return std::nullopt;
    return free_bytes.load();
  }
  Status CheckPlace() override { return displaced ? Status::IoError("moved away") : Status::Ok(); }

  std::function<bool()> until_commit_ends;  // Set while nothing is committed.
  std::function<bool()> until_applied;      // The same; and if it is, batches are told of before.
  std::atomic<int> applied = 0;
  std::atomic<int64_t> commit_takes_ms = 0;
  std::atomic<std::thread::id> committed_on;
  std::atomic<int> commits = 0;
  std::atomic<int> syncs = 0;
  std::atomic<int> synced_commits = 0;
  std::atomic<bool> fail_commits = false;
  std::atomic<bool> fail_syncs = false;
  std::atomic<bool> displaced = false;
  std::atomic<uint64_t> free_bytes = 1'000;
};

// What a test's commit thread reports.
class Harness {
 public:
  explicit Harness(DurabilityChoice durability)
      : thread(loop.get(), &store, durability,
               {.done = [this] { ++done; },
                .fail =
                    [this](const char* what, const Status& failure) {
                      const std::lock_guard lock(mutex_);
                      failures_.push_back(std::string(what) + ": " + failure.message());
                    },
                .slow =
                    [this](const std::string& what) {
                      const std::lock_guard lock(mutex_);
                      slow_.push_back(what);
                    }},
               {.near_bytes = 2'000, .told = [this](std::optional<uint64_t> free_bytes, auto) {
                  told.push_back(free_bytes);
                }}) {}
  ~Harness() {
    thread.Stop();
    uv_run(loop.get(), UV_RUN_DEFAULT);
  }

  // One with `rules` rules.
  const ledger::CommitBatch& NextBatch(int rules = 1) {
    batch_.Clear();
    for (; rules > 0; --rules) {
      batch_.RuleSet({"shop", FlowId{++rules_}, ledger::RuleState::kActive, "{}"});
    }
    batch_.Sealed({.batch_number = static_cast<uint64_t>(store.commits) + 1});
    return batch_;
  }
  // Commits one rule and waits until it is done.
  void CommitOne() {
    NextBatch();
    const int before = done;
    thread.Commit(&batch_);
    REQUIRE(loop.RunUntil([&] { return done == before + 1; }));
  }

  void CommitSome() {
    for (int i = 0; i < 100; ++i) CommitOne();
  }
  // Until commits have been quick for long enough, also on a busy machine; the last ones are made
  // at once.
  void CommitUntilQuick() {
    REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] {
      CommitSome();
      return thread.CommitHere(NextBatch()) && thread.CommitHere(NextBatch());
    }));
  }
  // Once commits are quick. The thread may want the store at times.
  void CommitHere() {
    REQUIRE(
        testing::PollUntil(testing::kPatienceMs, [&] { return thread.CommitHere(NextBatch()); }));
  }

  std::vector<std::string> failures() {
    const std::lock_guard lock(mutex_);
    return failures_;
  }
  std::vector<std::string> slow() {
    const std::lock_guard lock(mutex_);
    return slow_;
  }

  TestLoop loop;
  WatchedStore store;
  int done = 0;
  std::vector<std::optional<uint64_t>> told;  // Of the disk.
  CommitThread thread;

 private:
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::vector<std::string> slow_;
  ledger::CommitBatch batch_;
  int64_t rules_ = 0;
};

TEST_CASE("a small batch is committed at once when commits have been quick") {
  Harness harness({Durability::kSync, 0});
  CHECK_FALSE(harness.thread.CommitHere(harness.NextBatch()));
  harness.CommitUntilQuick();
  CHECK(harness.store.committed_on == std::this_thread::get_id());
  CHECK(harness.failures().empty());
}

TEST_CASE("a batch is not committed at once if it is large, or behind another, or synced later") {
  DurabilityChoice choice{Durability::kSync, 0, 10};
  Harness harness(choice);
  harness.CommitUntilQuick();
  const int before = harness.store.commits;
  CHECK_FALSE(harness.thread.CommitHere(harness.NextBatch(11)));
  const ledger::CommitBatch& batch = harness.NextBatch();
  harness.thread.Commit(&batch);
  CHECK_FALSE(harness.thread.CommitHere(batch));
  REQUIRE(harness.loop.RunUntil([&] { return !harness.thread.busy(); }));
  CHECK(harness.store.commits == before + 1);

  Harness later({Durability::kInterval, 10'000});
  later.CommitSome();
  CHECK_FALSE(later.thread.CommitHere(later.NextBatch()));
  Harness never({Durability::kSync, 0, 0});
  never.CommitSome();
  CHECK_FALSE(never.thread.CommitHere(never.NextBatch()));
}

TEST_CASE("after a commit that took long the next ones are not made at once") {
  Harness harness({Durability::kSync, 0});
  harness.CommitUntilQuick();
  harness.store.commit_takes_ms = 50;
  harness.CommitHere();
  CHECK_FALSE(harness.thread.CommitHere(harness.NextBatch()));
  harness.store.commit_takes_ms = 0;
  CHECK_FALSE(harness.thread.CommitHere(harness.NextBatch()));
  harness.CommitUntilQuick();
}

TEST_CASE("a commit made at once that hangs is told of while it does, and when it has ended") {
  Harness harness({Durability::kSync, 0});
  harness.CommitUntilQuick();
  harness.store.until_commit_ends = [&] {
    return testing::PollUntil(testing::kPatienceMs, [&] { return !harness.slow().empty(); });
  };
  harness.CommitHere();
  const std::vector<std::string> slow = harness.slow();
  REQUIRE(slow.size() == 2);
  CHECK(slow[0].starts_with("a commit has not ended for "));
  CHECK(slow[1].starts_with("a commit took "));
}

TEST_CASE("a commit made at once that fails is reported as failed") {
  Harness harness({Durability::kSync, 0});
  harness.CommitUntilQuick();
  harness.store.fail_commits = true;
  harness.CommitHere();
  CHECK(harness.failures() == std::vector<std::string>{"commit: no space"});
}

TEST_CASE("a batch that the commit thread reports is in the store") {
  Harness harness({Durability::kSync, 0});
  harness.CommitOne();
  harness.CommitOne();
  CHECK(harness.store.rows(ledger::Family::kRules).size() == 2);
  CHECK(harness.store.syncs == 0);
  CHECK(harness.failures().empty());
}

TEST_CASE("with an interval what was committed is synced soon, and once") {
  Harness harness({Durability::kInterval, 1});
  harness.CommitOne();
  CHECK(
      testing::PollUntil(testing::kPatienceMs, [&] { return harness.store.synced_commits == 1; }));
  CHECK(harness.store.syncs == 1);
  harness.CommitOne();
  CHECK(
      testing::PollUntil(testing::kPatienceMs, [&] { return harness.store.synced_commits == 2; }));
  CHECK(harness.store.syncs == 2);
}

TEST_CASE("commits that follow one another do not put a sync off for ever") {
  Harness harness({Durability::kInterval, 1});
  int commits = 0;
  REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] {
    harness.CommitOne();
    ++commits;
    return harness.store.syncs >= 3;
  }));
  CHECK(commits >= 3);
}

TEST_CASE("a long interval syncs nothing by itself") {
  Harness harness({Durability::kInterval, 3'600'000});
  for (int i = 0; i < 100; ++i) harness.CommitOne();
  CHECK(harness.store.commits == 100);
  CHECK(harness.store.syncs == 0);
}

TEST_CASE(
    "a batch is done when it is on the disk, and the store is the thread's until it is applied") {
  Harness harness({Durability::kSync});
  harness.CommitUntilQuick();
  std::atomic<bool> may_apply = false;
  harness.store.until_applied = [&] {
    return testing::PollUntil(testing::kPatienceMs, [&] { return may_apply.load(); });
  };
  harness.CommitOne();
  CHECK_FALSE(harness.thread.busy());
  CHECK(harness.store.applied == 0);
  const int commits = harness.store.commits;
  const ledger::CommitBatch& next = harness.NextBatch();
  CHECK_FALSE(harness.thread.CommitHere(next));
  const int done = harness.done;
  harness.thread.Commit(&next);
  CHECK(harness.store.commits == commits);
  may_apply = true;
  REQUIRE(harness.loop.RunUntil([&] { return harness.done == done + 1; }));
  CHECK(harness.store.commits == commits + 1);
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return harness.store.applied == 2; }));
}

TEST_CASE("a batch that is on the disk is found done without a poll of the loop") {
  Harness harness({Durability::kSync});
  const ledger::CommitBatch& batch = harness.NextBatch();
  harness.thread.Commit(&batch);
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    harness.thread.Collect();
    return harness.done == 1;
  }));
  CHECK_FALSE(harness.thread.busy());
  harness.CommitOne();  // What the first one left for a poll is nothing.
  CHECK(harness.done == 2);
}

TEST_CASE("the store is closed behind what was still to be applied") {
  Harness harness({Durability::kSync, 0});
  std::atomic<bool> may_apply = false;
  harness.store.until_applied = [&] {
    return testing::PollUntil(testing::kPatienceMs, [&] { return may_apply.load(); });
  };
  harness.CommitOne();
  std::atomic<int> applied_at_close = -1;
  const int done = harness.done;
  harness.thread.Finish([&] {
    applied_at_close = harness.store.applied.load();
    return Status::Ok();
  });
  may_apply = true;
  REQUIRE(harness.loop.RunUntil([&] { return harness.done == done + 1; }));
  CHECK(applied_at_close == 1);
}

TEST_CASE("a commit that fails is reported as failed") {
  Harness harness({Durability::kSync, 0});
  harness.store.fail_commits = true;
  harness.CommitOne();
  CHECK(harness.failures() == std::vector<std::string>{"commit: no space"});
}

TEST_CASE("a sync that fails is reported as failed") {
  Harness harness({Durability::kInterval, 1});
  harness.store.fail_syncs = true;
  harness.CommitOne();
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return !harness.failures().empty(); }));
  CHECK(harness.failures().front() == "sync: bad sector");
}

TEST_CASE("a store that is no longer in its place is found without a commit") {
  Harness harness({Durability::kSync, 0});
  harness.store.displaced = true;
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return !harness.failures().empty(); }));
  CHECK(harness.failures().front() == "check: moved away");
}

TEST_CASE("a store that is no longer in its place is found beside a commit, too") {
  Harness harness({Durability::kSync, 0});
  harness.store.displaced = true;
  harness.CommitOne();
  CHECK(harness.failures() == std::vector<std::string>{"check: moved away"});
}

TEST_CASE("what the disk has left is told when it changes, with commits and without") {
  Harness harness({Durability::kSync, 0});
  std::vector<std::optional<uint64_t>> expected = {1'000};
  const auto tells = [&] { return harness.told.size() == expected.size(); };
  REQUIRE(harness.loop.RunUntil(tells));
  expected.emplace_back(500);
  harness.store.free_bytes = 500;
  REQUIRE(harness.loop.RunUntil(tells));
  expected.emplace_back(400);
  harness.store.free_bytes = 400;
  // One commit behind the other, so that the thread is never without a job.
  REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] {
    harness.CommitOne();
    return tells();
  }));
  expected.emplace_back(300);
  harness.store.free_bytes = 300;
  // Made at once, most of them.
  REQUIRE(harness.loop.RunUntil([&] {
    if (!harness.thread.CommitHere(harness.NextBatch())) harness.CommitOne();
    return tells();
  }));
  expected.emplace_back(std::nullopt);  // It does not tell any more.
  harness.store.free_bytes = 0;
  REQUIRE(harness.loop.RunUntil(tells));
  CHECK(harness.told == expected);
}

TEST_CASE("the last job of the commit thread closes the store") {
  Harness harness({Durability::kSync, 0});
  harness.CommitOne();
  bool closed = false;
  harness.thread.Finish([&] {
    closed = true;
    return Status::IoError("cannot close");
  });
  REQUIRE(harness.loop.RunUntil([&] { return harness.done == 2; }));
  CHECK(closed);
  CHECK(harness.failures() == std::vector<std::string>{"close: cannot close"});
}

TEST_CASE("the scan thread answers the request it was given") {
  TestLoop loop;
  WatchedStore store;
  ledger::Token token;
  token.key = {ledger::Family::kTokensShort, 1000, TokenId{7}};
  token.flow = FlowId{1};
  token.session = SessionId{1};
  token.count = 1;
  token.fence = Fence{2};
  ledger::CommitBatch batch;
  batch.TokenIssued(token);
  batch.Sealed({.batch_number = 1});
  REQUIRE(store.Commit(batch).ok());

  std::vector<size_t> found;
  ScanThread thread(loop.get(), &store, [&](const ledger::ScanResult& result) {
    found.push_back(result.expired.size());
  });
  ledger::ScanRequest request;
  request.upper_ms = 999;
  thread.Scan(request);
  CHECK(thread.busy());
  REQUIRE(loop.RunUntil([&] { return found.size() == 1; }));
  request.upper_ms = 1000;
  thread.Scan(request);
  REQUIRE(loop.RunUntil([&] { return found.size() == 2; }));
  CHECK(found == std::vector<size_t>{0, 1});
  thread.Stop();
  uv_run(loop.get(), UV_RUN_DEFAULT);
}

}  // namespace
}  // namespace nowcalls::server
