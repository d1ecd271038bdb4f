#include "store/rocks/late_compactions.h"

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
}

}  // namespace
}  // namespace nowcalls::store
