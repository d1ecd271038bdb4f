// Power cuts at every change that a life of a ledger makes to its files, and at every change of the
// recoveries after them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/prng.h"
#include "faults/life.h"
#include "support/sample.h"

namespace nowcalls::faults {
namespace {

using Kind = DiskChange::Kind;

// Seeds for each cut; the first two leave nothing and all of what is pending.
uint64_t SeedCount(uint64_t usual) {
  const char* wanted = std::getenv("NOWCALLS_POWER_CUT_SEEDS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : usual;
}

struct Bounds {
  uint64_t acknowledged = 0;
  uint64_t committed = 0;
  uint64_t begun = 0;

  void Follow(const DiskChange& change) {
    if (change.kind == Kind::kBegun) begun = change.offset;
    if (change.kind == Kind::kCommitted) committed = change.offset;
    if (change.kind == Kind::kAcknowledged) acknowledged = change.offset;
  }
};

constexpr uint64_t kCutsOfSample = 100;  // Moments of one run.

struct CutCounts {
  uint64_t points = 0;
  uint64_t cuts = 0;
  uint64_t lost = 0;  // Cuts that took the batch that was not acknowledged.
  uint64_t kept = 0;  // Cuts that left it.
  uint64_t most = 0;  // How many batches a cut took, at most.
};

std::string Keep(const DiskImage& image) {
  std::string path = (std::filesystem::temp_directory_path() / "nowcalls-power-cut").string();
  WriteImage(image, path + "/ledger");
  return path;
}

// Cuts the power before each of `changes` and after the last, or at a sample of these moments.
class Cutter {
 public:
  Cutter(Judge* judge, uint64_t seeds, uint64_t base)
      : judge_(*judge), seeds_(seeds), base_(base) {}

  // False: a cut did what it must not, and the test has failed.
  bool CutEverywhere(const DiskImage& before, const std::vector<DiskChange>& changes,
                     uint64_t batch) {
    Disk disk(before);
    Bounds bounds{batch, batch, batch};
    bool fine = CutAt(disk, 0, bounds);
    size_t applied = 0;
    for (const uint64_t last : testing::SampleOf(changes.size(), kCutsOfSample)) {
      for (; applied <= last; ++applied) {
        disk.Apply(changes[applied]);
        bounds.Follow(changes[applied]);
      }
      fine = fine && CutAt(disk, applied, bounds);
    }
    return fine;
  }

  const CutCounts& counts() const { return counts_; }

 private:
  bool CutAt(const Disk& disk, size_t point, const Bounds& bounds) {
    ++counts_.points;
    for (uint64_t i = 0; i < seeds_; ++i) {
      const uint64_t seed = i < 2 ? i : (base_ + point) * seeds_ + i;
      const DiskImage image = disk.CutPower(seed);
      const Judge::Verdict& verdict = judge_.Look(image);
      ++counts_.cuts;
      std::string problem = verdict.problem;
      if (problem.empty() && verdict.batch < bounds.acknowledged) problem = "batches are lost";
      // All of it is what a process leaves that is killed.
      if (problem.empty() && seed == Disk::kSeedAll && verdict.batch < bounds.committed) {
        problem = "batches are lost by a kill";
      }
      if (problem.empty() && verdict.batch > bounds.begun) problem = "batches came too early";
      if (verdict.batch < bounds.begun) {
        counts_.most = std::max(counts_.most, bounds.begun - verdict.batch);
      }
      if (bounds.begun > bounds.acknowledged) {
        ++(verdict.batch == bounds.begun ? counts_.kept : counts_.lost);
      }
      if (problem.empty()) continue;
      FAIL_CHECK("cut ", point, ", seed ", seed, ", acknowledged ", bounds.acknowledged, ", begun ",
                 bounds.begun, ", found ", verdict.batch, ": ", problem, "; see ", Keep(image));
      return false;
    }
    return true;
  }

  Judge& judge_;
  const uint64_t seeds_;
  const uint64_t base_;
  CutCounts counts_;
};

size_t CountOf(const std::vector<DiskChange>& changes, Kind kind, const std::string& suffix) {
  size_t count = 0;
  for (const DiskChange& change : changes) {
    count += change.kind == kind && change.name.ends_with(suffix) ? 1 : 0;
  }
  return count;
}

struct SpareRenames {
  size_t given = 0;   // Logs that are to become spares.
  size_t filled = 0;  // Those of them that are being filled with zeros.
  size_t taken = 0;   // Spares that become logs.
};

SpareRenames SpareRenamesOf(const std::vector<DiskChange>& changes) {
  SpareRenames renames;
  for (const DiskChange& change : changes) {
    if (change.kind != Kind::kRename) continue;
    const bool was_spare = change.name.starts_with("spare_log");
    const bool is_spare = change.to.starts_with("spare_log");
    if (!was_spare && is_spare) ++renames.given;
    if (was_spare && is_spare) ++renames.filled;
    if (was_spare && !is_spare) ++renames.taken;
  }
  return renames;
}

void Report(const Cutter& cutter, const Judge& judge) {
  const CutCounts& counts = cutter.counts();
  MESSAGE(counts.points, " points, ", counts.cuts, " power cuts, ", judge.images(),
          " different disks; the batch in flight was lost ", counts.lost, " times and kept ",
          counts.kept, "; at most ", counts.most, " batches were lost");
}

using store::Durability;

struct ShortLife {
  explicit ShortLife(Durability of = Durability::kSync, int batches = 200)
      : life(7, batches, 60), durability(of), judge(&life, of) {
    recorded = Record(life, {},
                      {.from = 0,
                       .to = life.size() - 5,
                       .closes = true,
                       .wants_spares = durability == Durability::kSync,
                       .durability = durability});
    REQUIRE(recorded.problem == "");
    // What a cut could hit is there.
    CHECK(CountOf(recorded.changes, Kind::kMake, ".sst") > life.size() / 10);
    // Logs that are needed no more are deleted, or become spares.
    const size_t logs_gone = CountOf(recorded.changes, Kind::kDelete, ".log") +
                             CountOf(recorded.changes, Kind::kRename, ".log");
    CHECK(logs_gone > life.size() / 60);
  }

  const Life life;
  const Durability durability;
  Recorded recorded;
  Judge judge;
};

struct IntervalLife : ShortLife {
  IntervalLife() : ShortLife(Durability::kInterval, 90) {}
};
struct UnsyncedLife : ShortLife {
  UnsyncedLife() : ShortLife(Durability::kNone, 90) {}
};

TEST_CASE_FIXTURE(ShortLife, "a power cut at any moment loses nothing that was acknowledged") {
  CHECK(CountOf(recorded.changes, Kind::kDelete, ".sst") > 3);
  // Logs become spares, which are filled again and become logs.
  const SpareRenames renames = SpareRenamesOf(recorded.changes);
  CHECK(renames.given > 3);
  CHECK(renames.filled > 3);
  CHECK(renames.taken > 3);
  Cutter cutter(&judge, SeedCount(3), 0);
  cutter.CutEverywhere({}, recorded.changes, 0);
  CHECK(cutter.counts().kept > 0);
  CHECK(cutter.counts().lost > 0);
  CHECK(cutter.counts().most == 1);
  Report(cutter, judge);
}

void CutUnsynced(ShortLife* life) {
  Cutter cutter(&life->judge, SeedCount(3), 0);
  cutter.CutEverywhere({}, life->recorded.changes, 0);
  CHECK(cutter.counts().most > 5);
  Report(cutter, life->judge);
}

TEST_CASE_FIXTURE(IntervalLife, "with syncs now and then a power cut leaves all up to the last") {
  CutUnsynced(this);
}

TEST_CASE_FIXTURE(UnsyncedLife, "without syncs a power cut leaves all batches up to some") {
  CutUnsynced(this);
}

// What is left after the power was cut before change `point`.
DiskImage LeftAt(const DiskImage& before, const std::vector<DiskChange>& changes, size_t point,
                 uint64_t seed) {
  Disk disk(before);
  for (size_t i = 0; i < point; ++i) disk.Apply(changes[i]);
  return disk.CutPower(seed);
}

// The first open after a cut, and some batches.
Recorded Recover(const Life& life, const DiskImage& image, uint64_t batch, Durability durability) {
  const uint64_t batches = durability == Durability::kSync ? 3 : 8;
  return Record(
      life, image,
      {.from = batch, .to = std::min(batch + batches, life.size()), .durability = durability});
}

// Cuts at every change of the opens that follow cuts of `life`; what opens has the durabilities
// `later` in turns.
void CutRecoveries(ShortLife* of, const std::vector<Durability>& later) {
  constexpr uint64_t kSeeds = 3;
  const uint64_t chains = SeedCount(kSeeds);
  Cutter cutter(&of->judge, kSeeds, 1'000'000);
  Prng random(11);
  size_t opens = 0;
  bool fine = true;
  for (uint64_t chain = 0; fine && chain < chains; ++chain) {
    // The first of them is cut off while it makes its ledger.
    const size_t formatted = 40;
    size_t point = chain == 0 ? random.Below(formatted)
                              : formatted + random.Below(of->recorded.changes.size() - formatted);
    DiskImage image;
    std::vector<DiskChange> changes = of->recorded.changes;
    for (int recovery = 0; fine && recovery < 2; ++recovery) {
      const DiskImage left = LeftAt(image, changes, point, random.Next());
      const Judge::Verdict verdict = of->judge.Look(left);
      REQUIRE_MESSAGE(verdict.problem == "", Keep(left));
      const Recorded recovered =
          Recover(of->life, left, verdict.batch, later[opens++ % later.size()]);
      REQUIRE(recovered.problem == "");
      CHECK(recovered.changes.size() > 20);
      // After a kill the logs are with the operating system only, and are put on the disk before
      // they are read: before all but what a killed start may have left, and the mark of this one.
      const DiskChange& mark = recovered.changes.front();
      const auto first = std::find_if_not(
          recovered.changes.begin(), recovered.changes.end(), [&](const DiskChange& change) {
            const bool of_mark = mark.name == "opening" && change.file == mark.file;
            return of_mark || change.kind == Kind::kDelete;
          });
      REQUIRE(first != recovered.changes.end());
      const bool syncs_first = first->kind == Kind::kSyncFile;
      if (recovery == 0 && left.contains("witness")) {
        CHECK(syncs_first == (of->durability != Durability::kSync));
      }
      fine = cutter.CutEverywhere(left, recovered.changes, verdict.batch);
      image = left;
      changes = recovered.changes;
      point = random.Below(changes.size());
    }
  }
  CHECK(cutter.counts().kept > 0);
  Report(cutter, of->judge);
}

TEST_CASE_FIXTURE(ShortLife, "power cuts while a ledger recovers from power cuts lose nothing") {
  CutRecoveries(this, {Durability::kSync});
}

TEST_CASE_FIXTURE(UnsyncedLife, "what a power cut took without syncs does not come back") {
  CutRecoveries(this, {Durability::kNone, Durability::kSync, Durability::kInterval});
}

}  // namespace
}  // namespace nowcalls::faults
