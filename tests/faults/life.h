// A scripted life of a ledger, and the judge of what is left of it.
//
// Thread: one at a time.
#ifndef NOWCALLS_FAULTS_LIFE_H_
#define NOWCALLS_FAULTS_LIFE_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "faults/disk.h"
#include "ledger/commit_batch.h"
#include "store/rocks/rocks_store.h"
#include "support/temp_dir.h"
#include "unit/store/ledger_script.h"

namespace nowcalls::faults {

// Batches 1, 2, ... and what a ledger is to show after each of them.
struct Life {
  Life(uint64_t seed, int batch_count, int records);

  uint64_t size() const { return batches.size(); }
  // REQUIRES: 1 <= number <= size().
  const ledger::CommitBatch& Batch(uint64_t number) const { return batches[number - 1]; }

  std::vector<ledger::CommitBatch> batches;
  std::vector<store::Dump> states;  // By the number of the last batch; 0: none yet.
};

// Buffers so small that a life of a hundred batches has flushes, compactions and many logs.
store::RocksStoreOptions SmallOptions(store::Durability durability = store::Durability::kSync);

// Empty when `opened` shows exactly the state after batch `*number` of `life`, which it finds out,
// and when the seal and all numbers agree with what is there; else what is wrong.
std::string CheckState(const Life& life, store::LedgerSource* opened, uint64_t* number);

// Judges what power cuts leave, each image once.
class Judge {
 public:
  // A server of this durability opens them.
  explicit Judge(const Life* life, store::Durability durability = store::Durability::kSync)
      : life_(*life), durability_(durability) {}

  struct Verdict {
    uint64_t batch = 0;   // The last one that is there; all before it are too.
    std::string problem;  // Empty: it opens, and shows whole batches, and takes the next.
  };
  const Verdict& Look(const DiskImage& image);

  uint64_t images() const { return verdicts_.size(); }

 private:
  Verdict Open(const DiskImage& image);
  std::string TakeNext(store::RocksStore* opened, uint64_t batch);

  const Life& life_;
  const store::Durability durability_;
  const testing::TempDir dir_{testing::TempDir::Place::kMemory};
  std::unordered_map<uint64_t, Verdict> verdicts_;  // By the fingerprint of the image.
};

// Runs a part of `life` on the image in a directory of its own and returns what was done to its
// files. The image must show the state after batch `from`; batches up to `to` are committed.
// Acknowledged is what must outlive a power cut: each batch with `sync`, else the first, and all
// before a sync, of which `interval` has one now and then.
struct Run {
  uint64_t from = 0;
  uint64_t to = 0;
  bool closes = false;        // In good order at the end; else like a process that is killed.
  bool wants_spares = false;  // Waits a little for each spare log.
  store::Durability durability = store::Durability::kSync;
};
struct Recorded {
  std::vector<DiskChange> changes;
  std::string problem;  // Empty: all was committed.
};
Recorded Record(const Life& life, const DiskImage& image, const Run& run);

}  // namespace nowcalls::faults

#endif  // NOWCALLS_FAULTS_LIFE_H_
