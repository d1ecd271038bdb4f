#include "sim/seed_runner.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "base/check.h"
#include "sim/simulation.h"

namespace nowcalls::sim {
namespace {

constexpr uint64_t kToldEvery = 1'000;

std::string Failed(uint64_t seed) {
  return "SEED " + std::to_string(seed) + " failed; again with: " + ReplayCommand(seed);
}

// Goes on to the next seed to run.
void Choose(const SeedChoice& choice, SeedTotals* totals) {
  while (choice.clusters && !HasCluster(totals->next)) ++totals->next;
}

void RunSeed(SeedTotals* totals, const std::function<void(const std::string&)>& say) {
  const uint64_t seed = totals->next;
  const RunResult result = Run({.seed = seed});
  totals->requests += result.requests;
  totals->granted += result.granted;
  totals->faults.Add(result.faults);
  ++totals->seeds;
  ++totals->next;
  if (!result.violations.empty()) {
    ++totals->failures;
    std::string text = Failed(seed);
    for (const std::string& violation : result.violations) text += "\n  VIOLATION " + violation;
    say(text);
  }
  if (totals->seeds % kToldEvery == 0) say(std::to_string(totals->seeds) + " seeds done");
}

}  // namespace

SeedTotals RunSeeds(const SeedChoice& choice, const std::function<void(const std::string&)>& say) {
  // Shared with the children, so that what they have counted outlives them.
  void* const shared =
      mmap(nullptr, sizeof(SeedTotals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  NOWCALLS_CHECK(shared != MAP_FAILED);
  auto* const totals = new (shared) SeedTotals();
  totals->next = choice.first;
  while (totals->seeds < choice.seeds) {
    const pid_t child = fork();
    NOWCALLS_CHECK(child >= 0);
    if (child == 0) {
      // It ends with the runner, also when that is killed.
      NOWCALLS_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
      while (totals->seeds < choice.seeds) {
        Choose(choice, totals);
        RunSeed(totals, say);
      }
      _exit(0);
    }
    int status = 0;
    NOWCALLS_CHECK(waitpid(child, &status, 0) == child);
    if (totals->seeds >= choice.seeds) break;
    ++totals->failures;
    say(Failed(totals->next++) + "\n  VIOLATION the process ended in the middle");
    ++totals->seeds;
  }
  const SeedTotals result = *totals;
  munmap(shared, sizeof(SeedTotals));
  return result;
}

}  // namespace nowcalls::sim
