#include "faults/life.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "faults/recording_file_system.h"
#include "store/disk/ledger_files.h"
#include "store/rocks/ledger_reader.h"
#include "support/poll_until.h"

namespace nowcalls::faults {
namespace {

using store::RocksStore;

// Adds up what is live, and compares it with the seal.
class Proof : public ledger::EntityVisitor {
 public:
  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }

  std::string Problem() const {
    if (greatest_ >= seal_.next_fence) return "a fence or a session beyond the seal";
    if (tokens_ != seal_.live_tokens) return "another number of tokens than the seal's";
    if (counts_ != seal_.live_count_sum) return "another sum of counts than the seal's";
    return fences_ == seal_.live_fence_sum ? "" : "another sum of fences than the seal's";
  }

 private:
  Status On(const ledger::Seal& seal) {
    seal_ = seal;
    return {};
  }
  Status On(const ledger::Session& session) { return TakeNumber(session.id.value); }
  Status On(const ledger::Token& token) {
    ++tokens_;
    counts_ += token.count;
    fences_ += token.fence.value;
    if (!ids_.insert(token.key.id.value).second) return Status::Corruption("a token id twice");
    return TakeNumber(token.fence.value);
  }
  Status On(const auto& /*other*/) { return {}; }
  Status TakeNumber(uint64_t number) {
    greatest_ = std::max(greatest_, number);
    return numbers_.insert(number).second ? Status::Ok() : Status::Corruption("a number twice");
  }

  ledger::Seal seal_{0, 1, 0, 0, 0, 0};
  uint64_t tokens_ = 0;
  uint64_t counts_ = 0;
  uint64_t fences_ = 0;
  uint64_t greatest_ = 0;
  std::set<uint64_t> numbers_;
  std::set<uint64_t> ids_;
};

uint64_t FingerprintOf(const DiskImage& image) {
  std::string all;
  for (const auto& [name, bytes] : image) {
    all += name + ' ' + std::to_string(bytes.size()) + ' ' + bytes;
  }
  return std::hash<std::string>{}(all);
}

// A store over recorded files; syncs cost nothing.
struct Recording {
  Recording(const std::string& data_dir, const DiskImage& image, store::Durability durability)
      : files(std::make_shared<RecordingFileSystem>(data_dir + "/ledger", image)),
        env(rocksdb::NewCompositeEnv(files)) {
    store::RocksStoreOptions options = SmallOptions(durability);
    options.env = env.get();
    auto result = RocksStore::Open(data_dir, options);
    status = result.status();
    if (status.ok()) opened = *std::move(result);
  }

  const std::shared_ptr<RecordingFileSystem> files;
  const std::unique_ptr<rocksdb::Env> env;
  Status status;
  std::unique_ptr<RocksStore> opened;
};

std::string CommitPart(const Life& life, const Run& run, const std::string& data_dir,
                       Recording* recording) {
  constexpr int64_t kSpareMs = 30;  // A spare that is not asked for yet never comes.
  // On a busy machine flushes are left behind by commits. Two that end together may keep a log
  // until the next.
  constexpr int64_t kFlushMs = 100;
  constexpr uint64_t kSyncBatches = 9;
  const std::string dir = data_dir + "/ledger";
  for (uint64_t batch = run.from + 1; batch <= run.to; ++batch) {
    recording->files->Begun(batch);
    bool told = false;
    const Status status = recording->opened->CommitTelling(life.Batch(batch), [&] {
      told = true;
      recording->files->Committed(batch);
      recording->files->Acknowledged(batch);
    });
    if (!status.ok()) return status.ToString();
    if (!told) recording->files->Committed(batch);
    const bool syncs = run.durability == store::Durability::kInterval && batch % kSyncBatches == 0;
    const Status synced = syncs ? recording->opened->Sync() : Status();
    if (!synced.ok()) return synced.ToString();
    const bool synced_with = run.durability == store::Durability::kSync || batch == run.from + 1;
    if (!told && (syncs || synced_with)) {
      recording->files->Acknowledged(batch);
    }
    if (!run.wants_spares) continue;
    testing::PollUntil(kFlushMs, [&] { return store::LogNames(dir).size() <= 2; });
    testing::PollUntil(kSpareMs, [&] { return recording->files->HasSynced("spare_log"); });
  }
  return {};
}

}  // namespace

Life::Life(uint64_t seed, int batch_count, int records) {
  store::LedgerScript script(seed);
  states.push_back(script.Expected());
  batches.resize(static_cast<size_t>(batch_count));
  for (ledger::CommitBatch& batch : batches) {
    script.NextBatch(records, &batch);
    states.push_back(script.Expected());
  }
}

store::RocksStoreOptions SmallOptions(store::Durability durability) {
  store::RocksStoreOptions options;
  options.durability = durability;
  options.write_buffer_bytes = 64 * 1024;
  options.wal_bytes_max = 64 * 1024;
  options.manifest_bytes_max = 4 * 1024;
  return options;
}

std::string CheckState(const Life& life, store::LedgerSource* opened, uint64_t* number) {
  const store::Dump dump = store::DumpOf(opened);
  *number = store::BatchNumberOf(dump);
  if (*number >= life.states.size()) return "it shows batch " + std::to_string(*number);
  const std::string difference = store::DifferenceOf(dump, life.states[*number]);
  if (!difference.empty()) return "batch " + std::to_string(*number) + ": " + difference;
  Proof proof;
  const Status loaded = opened->Load(&proof);
  return loaded.ok() ? proof.Problem() : loaded.ToString();
}

const Judge::Verdict& Judge::Look(const DiskImage& image) {
  const auto [found, is_new] = verdicts_.try_emplace(FingerprintOf(image));
  if (is_new) found->second = Open(image);
  return found->second;
}

Judge::Verdict Judge::Open(const DiskImage& image) {
  WriteImage(image, dir_.Sub("ledger"));
  Verdict verdict;
  {
    // As tools read it, before a server has changed anything.
    auto reader = store::LedgerReader::Open(dir_.path());
    if (reader.ok()) verdict.problem = CheckState(life_, reader->get(), &verdict.batch);
    if (!reader.ok() && reader.status().code() != StatusCode::kNotFound) {
      verdict.problem = reader.status().ToString();
    }
    if (!verdict.problem.empty()) verdict.problem = "a reader: " + verdict.problem;
  }
  if (!verdict.problem.empty()) return verdict;
  const uint64_t read = verdict.batch;
  Recording recording(dir_.path(), image, durability_);
  verdict.problem = recording.status.ok()
                        ? CheckState(life_, recording.opened.get(), &verdict.batch)
                        : recording.status.ToString();
  if (verdict.problem.empty() && verdict.batch != read) verdict.problem = "a reader sees another";
  if (verdict.problem.empty()) verdict.problem = TakeNext(recording.opened.get(), verdict.batch);
  return verdict;
}

// Goes on after batch `batch`, is killed, and opened again.
std::string Judge::TakeNext(RocksStore* opened, uint64_t batch) {
  if (batch == life_.size()) return {};
  const Status status = opened->Commit(life_.Batch(batch + 1));
  if (!status.ok()) return "the next batch: " + status.ToString();
  uint64_t number = 0;
  std::string problem = CheckState(life_, opened, &number);
  if (problem.empty() && number != batch + 1) problem = "it is not there";
  return problem.empty() ? problem : "the next batch: " + problem;
}

Recorded Record(const Life& life, const DiskImage& image, const Run& run) {
  const testing::TempDir dir(testing::TempDir::Place::kMemory);
  WriteImage(image, dir.Sub("ledger"));
  Recording recording(dir.path(), image, run.durability);
  Recorded recorded;
  if (!recording.status.ok()) {
    recorded.problem = recording.status.ToString();
    return recorded;
  }
  uint64_t number = 0;
  recorded.problem = CheckState(life, recording.opened.get(), &number);
  if (recorded.problem.empty() && number != run.from) recorded.problem = "another state";
  if (recorded.problem.empty()) {
    recorded.problem = CommitPart(life, run, dir.path(), &recording);
  }
  if (recorded.problem.empty() && run.closes) {
    const Status closed = recording.opened->Close();
    if (!closed.ok()) recorded.problem = closed.ToString();
    if (closed.ok()) recording.files->Acknowledged(run.to);
  }
  // What is done after this moment, a kill would not do.
  recorded.changes = recording.files->Stop();
  return recorded;
}

}  // namespace nowcalls::faults
