#include "server/threads/cpu_apart.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace nowcalls::server {
namespace {

// A thread that sleeps until the test ends.
class Sleeper {
 public:
  Sleeper() : thread_([this] { Sleep(); }) {}
  ~Sleeper() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  pthread_t get() { return thread_.native_handle(); }

  std::vector<int> Cpus() {
    cpu_set_t set;
    REQUIRE(pthread_getaffinity_np(get(), sizeof(set), &set) == 0);
    return Listed(set);
  }

  static std::vector<int> Listed(const cpu_set_t& set) {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
    }
    return cpus;
  }

 private:
  void Sleep() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

std::vector<int> AllCpus() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  return Sleeper::Listed(set);
}

// All that the test may use; where it is the only one, that is kept.
std::vector<int> AllBut(int cpu) {
  std::vector<int> cpus = AllCpus();
  if (cpus.size() > 1) std::erase(cpus, cpu);
  return cpus;
}

TEST_CASE("a thread is kept off the CPU of the one that hands it work") {
  Sleeper sleeper;
  CpuApart apart(sleeper.get());
  const int first = AllCpus().front();
  const int last = AllCpus().back();
  apart.CallerIsOn(first);
  CHECK(sleeper.Cpus() == AllBut(first));

  SUBCASE("and follows when that has moved") {
    for (const int cpu : {last, first, last}) {
      apart.CallerIsOn(cpu);
      CHECK(sleeper.Cpus() == AllBut(cpu));
    }
  }
  SUBCASE("but not when the system does not tell") {
    apart.CallerIsOn(-1);
    CHECK(sleeper.Cpus() == AllBut(first));
  }
}

TEST_CASE("a thread whose affinity somebody else has set is left alone") {
  if (AllCpus().size() < 2) return;  // There is nothing else to set.
  Sleeper sleeper;
  CpuApart apart(sleeper.get());
  const int first = AllCpus().front();
  const int last = AllCpus().back();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(first), &one);

  SUBCASE("from the beginning") {}
  SUBCASE("later") {
    apart.CallerIsOn(first);
    CHECK(sleeper.Cpus() == AllBut(first));
  }
  REQUIRE(pthread_setaffinity_np(sleeper.get(), sizeof(one), &one) == 0);
  for (const int cpu : {last, first, last}) {
    apart.CallerIsOn(cpu);
    CHECK(sleeper.Cpus() == std::vector{first});
  }
}

}  // namespace
}  // namespace nowcalls::server
