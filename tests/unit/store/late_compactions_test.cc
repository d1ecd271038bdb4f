#include "store/late_compactions.h"

#include <doctest/doctest.h>
#include <rocksdb/env.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nowcalls::store {
namespace {

// What became of a job.
struct Fate {
  int run = 0;
  int dropped = 0;
};

void RunJob(void* fate) { ++static_cast<Fate*>(fate)->run; }
void DropJob(void* fate) { ++static_cast<Fate*>(fate)->dropped; }

// Runs a job as soon as it comes.
class RunningEnv : public rocksdb::EnvWrapper {
 public:
  RunningEnv() : rocksdb::EnvWrapper(rocksdb::Env::Default()) {}
  const char* Name() const override { return "RunningEnv"; }
  void Schedule(void (*run)(void* arg), void* arg, Priority priority, void*,
                void (*)(void* arg)) override {
    priorities.push_back(priority);
    run(arg);
  }
  int UnSchedule(void*, Priority) override { return 1000; }

  std::vector<Priority> priorities;
};

struct Held {
  Held() : Held(std::make_unique<RunningEnv>()) {}
  explicit Held(std::unique_ptr<RunningEnv> made) : target(made.get()), env(std::move(made)) {}

  void Schedule(Fate* fate, rocksdb::Env::Priority priority = rocksdb::Env::LOW,
                void* tag = nullptr) {
    env.Schedule(RunJob, fate, priority, tag, DropJob);
  }

  RunningEnv* target;
  LateCompactions env;
};

TEST_CASE("compactions wait until they are let in, and flushes do not") {
  Held held;
  Fate compaction;
  Fate flush;
  held.Schedule(&compaction);
  held.Schedule(&flush, rocksdb::Env::HIGH);
  CHECK(compaction.run == 0);
  CHECK(flush.run == 1);

  held.env.LetIn();
  CHECK(compaction.run == 1);
  held.Schedule(&compaction);
  CHECK(compaction.run == 2);
  held.env.LetIn();
  CHECK(compaction.run == 2);
  CHECK(compaction.dropped == 0);
  CHECK(held.target->priorities ==
        std::vector{rocksdb::Env::HIGH, rocksdb::Env::LOW, rocksdb::Env::LOW});
}

TEST_CASE("a database that is closed takes back its own compactions that wait") {
  Held held;
  Fate mine[2];
  Fate other;
  int my_tag = 0;
  int other_tag = 0;
  held.Schedule(&mine[0], rocksdb::Env::LOW, &my_tag);
  held.Schedule(&other, rocksdb::Env::LOW, &other_tag);
  held.Schedule(&mine[1], rocksdb::Env::LOW, &my_tag);
  // With the thousand that the Env below says to have dropped.
  CHECK(held.env.UnSchedule(&my_tag, rocksdb::Env::HIGH) == 1000);
  CHECK(held.env.UnSchedule(&my_tag, rocksdb::Env::LOW) == 1002);
  CHECK(mine[0].dropped == 1);
  CHECK(mine[1].dropped == 1);
  held.env.LetIn();
  CHECK(mine[0].run + mine[1].run == 0);
  CHECK(other.run == 1);
  CHECK(other.dropped == 0);
}

TEST_CASE("the files of an Env that holds compactions back are those of the Env below") {
  Held held;
  CHECK(held.env.GetFileSystem() == held.target->GetFileSystem());
  CHECK(held.env.GetSystemClock() == held.target->GetSystemClock());
}

struct LetInHeld : Held {
  LetInHeld() { env.LetIn(); }
  // As many tokens as make a mass, in two batches.
  void Mass(int64_t now_ms) {
    env.Committed(LateCompactions::kMassDue - 1, now_ms);
    env.Committed(1, now_ms);
  }
};

TEST_CASE("compactions wait for the end of a mass expiry, and those behind it do not") {
  LetInHeld held;
  Fate compaction;
  held.Mass(1000);
  held.Schedule(&compaction);
  CHECK(compaction.run == 0);
  const int64_t last_ms = 1000 + LateCompactions::kCalmMs - 1;
  held.Mass(last_ms);
  held.env.Committed(1, last_ms + LateCompactions::kCalmMs - 1);
  CHECK(compaction.run == 0);
  SUBCASE("when there is something else to commit") {
    held.env.Committed(1, last_ms + LateCompactions::kCalmMs);
  }
  SUBCASE("when there is nothing more to commit") {
    held.env.Committed(0, last_ms + LateCompactions::kCalmMs);
  }
  CHECK(compaction.run == 1);
  held.Schedule(&compaction);
  CHECK(compaction.run == 2);
  held.Mass(5000);
  held.Schedule(&compaction);
  CHECK(compaction.run == 2);
}

TEST_CASE("no compaction waits for tokens that end one after the other") {
  LetInHeld held;
  Fate compaction;
  for (int64_t now_ms = 1000; now_ms < 5000; now_ms += LateCompactions::kWindowMs) {
    held.env.Committed(LateCompactions::kMassDue - 1, now_ms);
    held.Schedule(&compaction);
  }
  CHECK(compaction.run == 4000 / LateCompactions::kWindowMs);
}

TEST_CASE("a mass expiry that goes on holds compactions until a family has many files more") {
  LetInHeld held;
  Fate compaction;
  held.Mass(1000);
  held.Schedule(&compaction);
  for (int flush = 1; flush < LateCompactions::kFlushesMax; ++flush) {
    held.env.Flushed(3, false);
    held.env.Flushed(4, false);
  }
  CHECK(compaction.run == 0);
  held.env.Flushed(4, false);
  CHECK(compaction.run == 1);
  held.Mass(1100);
  held.Schedule(&compaction);
  CHECK(compaction.run == 2);

  // What was counted is forgotten with the next.
  held.env.Committed(0, 1100 + LateCompactions::kCalmMs);
  held.Mass(9000);
  held.env.Flushed(4, false);
  held.Schedule(&compaction);
  CHECK(compaction.run == 2);
}

TEST_CASE("compactions do not wait where commits are slowed down already") {
  LetInHeld held;
  Fate compaction;
  held.Mass(1000);
  held.Schedule(&compaction);
  held.env.Flushed(4, false);
  CHECK(compaction.run == 0);
  held.env.Flushed(3, true);
  CHECK(compaction.run == 1);
}

TEST_CASE("who closes or copies lets compactions in, also during a mass expiry") {
  LetInHeld held;
  Fate compaction;
  held.Mass(1000);
  held.Schedule(&compaction);
  held.env.LetIn();
  CHECK(compaction.run == 1);
  held.Mass(1050);
  held.Schedule(&compaction);
  CHECK(compaction.run == 2);
}

TEST_CASE("a mass expiry lets no compaction in that nobody has let in") {
  Held held;
  Fate compaction;
  held.env.Committed(LateCompactions::kMassDue, 1000);
  held.Schedule(&compaction);
  for (int flush = 0; flush < LateCompactions::kFlushesMax; ++flush) held.env.Flushed(4, false);
  held.env.Committed(0, 1000 + LateCompactions::kCalmMs);
  CHECK(compaction.run == 0);
  held.env.LetIn();
  CHECK(compaction.run == 1);
}

}  // namespace
}  // namespace nowcalls::store
