// Turn: the order of a turn, what it asks of its driver, and the phases of an end.
#include "node/turn.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>

#include "node/limits.h"
#include "support/engine_harness.h"

namespace nowcalls::node {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::HelloRequest;

// A driver whose commits are durable when the test says so, and that writes down what it is asked.
class TestNode : private Io, private ledger::Clock {
 public:
  explicit TestNode(int64_t gather_ms = 0) : turn(&harness.engine(), this, this, gather_ms) {
    connection = harness.Connect();
    harness.Call(connection, HelloRequest(1, "default", "a"));
  }

  Instant Now() const override { return harness.now(); }
  ClockSample Sample() const override {
    return {.boottime_ms = harness.now().ms, .wall_ms = harness.now().ms, .boot_id = {}};
  }

  void Ask(uint32_t msgid, uint32_t requests = 1) {
    std::string bytes;
    for (uint32_t i = 0; i < requests; ++i) bytes += AcquireRequest(msgid + i, 1);
    harness.Send(connection, bytes);
    reads_ = Reads();
  }
  bool Reads() { return harness.driver().socket(connection).reading; }
  size_t replies() { return harness.TakeReplies(connection).size(); }
  void FinishCommit() {
    REQUIRE(harness.store().Commit(*std::exchange(batch, nullptr)).ok());
    turn.OnDurable();
  }
  std::string TakeAsked() { return std::exchange(asked, {}); }

  EngineHarness harness;
  engine::ConnectionId connection = 0;
  bool quick = false;  // Commits that may be made at once are.
  bool backup = false;
  bool open = true;
  bool refuses = false;  // Another node has the claim.
  const ledger::CommitBatch* batch = nullptr;
  std::string asked;  // Of the Io, a word each.

 private:
  bool Commit(const ledger::CommitBatch& sealed, bool at_once) override {
    asked += at_once ? "commit-at-once " : "commit ";
    if (refuses) {
      turn.OnDeposed();
      return false;
    }
    if (quick && at_once) {
      REQUIRE(harness.store().Commit(sealed).ok());
      return true;
    }
    REQUIRE(batch == nullptr);
    batch = &sealed;
    return false;
  }
  void Scan(const ledger::ScanRequest& /*request*/) override { asked += "scan "; }
  bool TakeMoreToRead() override {
    const bool read = std::exchange(reads_, Reads());
    return reads_ && !read;
  }
  void Polled(Instant /*now*/) override {}
  Instant NextWork() const override { return kNever; }
  bool answers_later() const override { return backup; }
  void LeftUnanswered(size_t connections) override {
    asked += "left-" + std::to_string(connections) + " ";
  }
  void Disconnect(Instant /*now*/) override { asked += "disconnect "; }
  bool connected() const override { return open; }
  void CloseStore() override { asked += "close "; }
  void EndIsLate() override { asked += "late "; }
  void Abandon() override { asked += "abandon "; }

  bool reads_ = true;

 public:
  Turn turn;
};

TEST_CASE("a batch that is committed at once is answered in its turn") {
  TestNode node;
  node.quick = true;
  node.Ask(2);
  node.turn.Run();
  CHECK(node.TakeAsked() == "commit-at-once ");
  CHECK(node.replies() == 1);
}

TEST_CASE("a reply leaves in the turn that hears of its batch, and no other batch begins before") {
  TestNode node;
  node.Ask(2);
  node.turn.Run();
  node.Ask(3);
  node.Ask(4);
  node.turn.Run();
  CHECK(node.TakeAsked() == "commit-at-once ");
  CHECK(node.replies() == 0);
  node.FinishCommit();
  node.turn.Run();
  CHECK(node.replies() == 1);
  CHECK(node.TakeAsked() == "commit-at-once ");  // Of both that came meanwhile.
  node.FinishCommit();
  node.turn.Run();
  CHECK(node.replies() == 2);
}

TEST_CASE("a node that gathers has the next requests of those that were answered in one batch") {
  TestNode node(/*gather_ms=*/2);
  node.Ask(2);
  node.turn.Run();
  node.Ask(3);
  node.turn.Run();
  node.FinishCommit();
  REQUIRE(node.TakeAsked() == "commit-at-once ");
  CHECK(node.turn.Run() == 2);
  CHECK(node.replies() == 1);
  node.harness.Sleep(1);
  node.Ask(4);
  CHECK(node.turn.Run() == 1);
  CHECK(node.TakeAsked().empty());
  node.harness.Sleep(1);
  node.turn.Run();
  CHECK(node.TakeAsked() == "commit-at-once ");
  node.FinishCommit();
  node.turn.End();  // An end does not gather.
  node.turn.Run();
  CHECK(node.replies() == 2);
}

TEST_CASE("a loop that was held up commits beside it until it has caught up") {
  TestNode node;
  const int64_t sleep_ms = node.turn.Run();
  node.harness.Sleep(sleep_ms + CatchUp::kLateMs + 1);
  node.Ask(2);
  CHECK(node.turn.Run() == 0);
  CHECK(node.TakeAsked() == "commit ");
  node.FinishCommit();
  node.turn.Run();
  node.Ask(3);
  node.turn.Run();
  CHECK(node.TakeAsked().ends_with("commit-at-once "));
}

TEST_CASE("what the rest of the input kept from being read comes before deadlines, too") {
  TestNode node;
  node.harness.Sleep(node.turn.Run() + CatchUp::kLateMs + 1);
  node.turn.Run();
  REQUIRE(node.TakeAsked().empty());
  node.Ask(2, 1'000);  // More than a turn takes of new input.
  REQUIRE_FALSE(node.Reads());
  node.turn.Run();
  CHECK(node.Reads());
  CHECK(node.TakeAsked() == "commit ");
}

TEST_CASE("a turn sleeps no longer than to the next deadline, nor for ever") {
  TestNode node;
  node.quick = true;
  node.Ask(2);
  CHECK(node.turn.Run() <= kSleepMsMax);
  const Instant due = node.harness.engine().NextDeadline();
  REQUIRE(due > node.Now());
  node.harness.Sleep(1);
  CHECK(node.turn.Run() == std::min(kSleepMsMax, due - node.Now()));
}

TEST_CASE("an end answers, disconnects, and closes the store, each after the one before") {
  TestNode node;
  node.backup = true;
  node.Ask(2);
  node.turn.End();
  CHECK(node.turn.phase() == Phase::kAnswering);
  node.turn.Run();
  CHECK(node.TakeAsked() == "commit ");
  node.FinishCommit();
  node.turn.Run();
  CHECK(node.replies() == 1);
  CHECK(node.turn.phase() == Phase::kAnswering);
  node.backup = false;
  node.turn.Run();
  CHECK(node.TakeAsked() == "disconnect ");
  CHECK(node.turn.phase() == Phase::kDisconnecting);
  node.turn.Run();
  CHECK(node.TakeAsked().empty());
  node.harness.engine().OnDisconnect(node.connection, node.Now());
  node.open = false;
  node.turn.Run();
  if (node.batch != nullptr) {
    CHECK(node.TakeAsked() == "commit ");
    node.FinishCommit();
    node.turn.Run();
  }
  CHECK(node.TakeAsked() == "close ");
  CHECK(node.turn.phase() == Phase::kClosing);
  CHECK_FALSE(node.turn.engine_runs());
  node.turn.OnClosed();
  CHECK(node.turn.Run() == 0);
  CHECK(node.turn.phase() == Phase::kClosed);
}

TEST_CASE("an end whose disk hangs is late") {
  TestNode node;
  node.Ask(2);
  node.turn.End();
  node.turn.Run();
  node.harness.Sleep(kEndMsMax);
  for (int turn = 0; turn < 3; ++turn) node.turn.Run();
  CHECK(node.TakeAsked().find("late ") != std::string::npos);
}

// Whatever happens to it afterwards.
void CheckIsDeposed(TestNode* node) {
  CHECK(node->turn.phase() == Phase::kDeposed);
  CHECK_FALSE(node->turn.engine_runs());
  node->turn.OnDurable();
  CHECK(node->turn.OnScanned({}).ok());
  node->turn.OnDeposed();
  node->harness.Sleep(kEndMsMax);
  CHECK(node->turn.Run() == 0);
  CHECK(node->TakeAsked().empty());
  CHECK(node->replies() == 0);
}

TEST_CASE("a writer whose batch finds another claim answers nothing and closes at once") {
  TestNode node;
  node.Ask(2);
  SUBCASE("that was committed beside the loop") {
    node.turn.Run();
    REQUIRE(node.TakeAsked() == "commit-at-once ");
    node.Ask(3);
    node.turn.OnDeposed();
    CHECK(node.TakeAsked() == "abandon ");
  }
  SUBCASE("that was committed at once") {
    node.refuses = true;
    CHECK(node.turn.Run() == 0);
    CHECK(node.TakeAsked() == "commit-at-once abandon ");
  }
  SUBCASE("although what came before is durable") {
    node.turn.Run();
    node.Ask(3);
    node.FinishCommit();
    node.TakeAsked();
    node.refuses = true;
    node.turn.Run();
    CHECK(node.TakeAsked() == "commit-at-once abandon ");
  }
  CheckIsDeposed(&node);
}

TEST_CASE("a writer is deposed in the middle of its end, too") {
  TestNode node;
  node.Ask(2);
  node.turn.End();
  node.turn.Run();
  REQUIRE(node.TakeAsked() == "commit ");
  node.turn.OnDeposed();
  CHECK(node.TakeAsked() == "abandon ");
  CheckIsDeposed(&node);
}

TEST_CASE("a store that is being closed is deposed no more") {
  TestNode node;
  node.quick = true;
  node.harness.engine().OnDisconnect(node.connection, node.Now());
  node.open = false;
  node.turn.Run();
  node.turn.End();
  while (node.turn.engine_runs()) {
    node.turn.Run();
    if (node.batch != nullptr) node.FinishCommit();
  }
  node.TakeAsked();
  node.turn.OnDeposed();
  CHECK(node.TakeAsked().empty());
  CHECK(node.turn.phase() == Phase::kClosing);
}

}  // namespace
}  // namespace nowcalls::node
