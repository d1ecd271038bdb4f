// One bit that changes in any file, and a log that ends at any byte: the ledger is the same, or it
// is refused. It is never smaller or different in silence.
//
// Some bits make RocksDB's assertions fail, which end the process. So the flips are tried by a
// child, this test binary again, which is started anew behind one that killed it.
// NOWCALLS_FLIPS=10000 tries so many, some minutes.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/last_words.h"
#include "base/prng.h"
#include "ledger/witness.h"
#include "store/rocks/ledger_reader.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/sample.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::Process;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

constexpr uint64_t kFlipSeed = 4711;
constexpr uint64_t kFlipsOfAChild = 100;
constexpr int64_t kChildMs = 4 * testing::kPatienceMs;  // Without one more flip.

// One with a small log only, one with data files and several logs, one that was closed.
constexpr int kLedgers = 3;

Dump MakeLedger(int which, const std::string& data_dir) {
  LedgerScript script(100 + static_cast<uint64_t>(which));
  const auto store = RocksStore::Open(data_dir, SyncedOptions());
  REQUIRE(store.ok());
  CommitMany(&script, which == 0 ? 6 : 60, which == 0 ? 8 : 60, store->get());
  if (which == 2) REQUIRE((*store)->Close().ok());
  return script.Expected();
}

struct Flip {
  int which = 0;
  std::string file;
  uint64_t at = 0;
  int mask = 0;
};

bool IsOfLedger(const std::string& name) {
  return !name.starts_with("LOG") && name != "LOCK" && !name.starts_with("OPTIONS") &&
         name != "IDENTITY";
}

std::vector<std::string> FilesOf(const std::string& data_dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data_dir + "/ledger")) {
    const std::string name = entry.path().filename();
    if (IsOfLedger(name) && entry.file_size() > 0) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Flip `index`: every kind of file as often as the others, at a place that the seed chooses. What a
// reader passes over, the zeros of a witness, is left alone.
Flip FlipAt(uint64_t index, const std::vector<std::string>& data_dirs) {
  Prng random(kFlipSeed + testing::SampleSeed() + index);
  Flip flip;
  flip.which = static_cast<int>(index % kLedgers);
  const std::vector<std::string> files = FilesOf(data_dirs[static_cast<size_t>(flip.which)]);
  constexpr std::string_view kKinds[] = {".log", ".sst", "MANIFEST-", "witness", ".log", "CURRENT"};
  const std::string_view kind = kKinds[random.Next() % std::size(kKinds)];
  std::vector<std::string> of_kind;
  for (const std::string& file : files) {
    if (file.find(kind) != std::string::npos) of_kind.push_back(file);
  }
  const std::vector<std::string>& chosen = of_kind.empty() ? files : of_kind;
  flip.file = chosen[random.Next() % chosen.size()];
  const uint64_t size = SizeOf(data_dirs[static_cast<size_t>(flip.which)] + "/ledger/" + flip.file);
  flip.at = random.Next() % (flip.file == "witness" ? ledger::kWitnessSlotBytes : size);
  if (flip.file == "witness") flip.at += random.Next() % 2 * ledger::kWitnessSlotStride;
  flip.mask = 1 << (random.Next() % 8);
  return flip;
}

enum class Outcome { kSame, kRefused, kDifferent };

template <typename Opened>
Outcome OutcomeOf(const Result<std::unique_ptr<Opened>>& opened, const Dump& expected) {
  if (!opened.ok()) return Outcome::kRefused;
  const Dump dump = DumpOf(opened->get());
  if (dump.size() == 1 && dump.front().find("corruption") == 0) return Outcome::kRefused;
  return dump == expected ? Outcome::kSame : Outcome::kDifferent;
}

// The worse of what a reader and a server make of it.
Outcome Try(const std::string& data_dir, const Dump& expected) {
  const Outcome reader = OutcomeOf(LedgerReader::Open(data_dir), expected);
  const Outcome server = OutcomeOf(RocksStore::Open(data_dir, SyncedOptions()), expected);
  return std::max(reader, server);
}

TEST_CASE("helper: try flips" * doctest::skip()) {
  const char* const given = getenv("FLIPS_DIR");
  REQUIRE(given != nullptr);
  InstallLastWords();
  const std::string dir = given;
  std::vector<std::string> data_dirs;
  std::vector<Dump> expected;
  const uint64_t begin = std::stoull(getenv("FLIPS_BEGIN"));
  const uint64_t end = std::stoull(getenv("FLIPS_END"));
  for (int which = 0; which < kLedgers; ++which) {
    data_dirs.push_back(dir + "/" + std::to_string(which));
    fs::remove_all(data_dirs.back());
    fs::create_directory(data_dirs.back());
    expected.push_back(MakeLedger(which, data_dirs.back()));
  }
  std::ofstream results(dir + "/results", std::ios::app);
  for (uint64_t i = begin; i < end; ++i) {
    const Flip flip = FlipAt(i, data_dirs);
    const std::string& data_dir = data_dirs[static_cast<size_t>(flip.which)];
    const std::string path = data_dir + "/ledger/" + flip.file;
    FlipByte(path, flip.at, flip.mask);
    results << i << " " << flip.which << " " << flip.file << " " << flip.at << " " << flip.mask
            << " " << std::flush;
    const Outcome outcome = Try(data_dir, expected[static_cast<size_t>(flip.which)]);
    results << static_cast<int>(outcome) << "\n" << std::flush;
    FlipByte(path, flip.at, flip.mask);
  }
}

struct Tally {
  uint64_t same = 0;
  uint64_t refused = 0;
  uint64_t asserted = 0;
  std::vector<std::string> different;
  uint64_t all() const { return same + refused + asserted + different.size(); }
};

Tally Count(const std::string& path) {
  Tally tally;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with(" 0")) ++tally.same;
    if (line.ends_with(" 1")) ++tally.refused;
    if (line.ends_with(" 2")) tally.different.push_back(line);
    if (line.ends_with(" died")) ++tally.asserted;
  }
  return tally;
}

TEST_CASE("a ledger of which any bit has changed is the same or is refused") {
  const char* const asked = getenv("NOWCALLS_FLIPS");
  const uint64_t usual = testing::Whole() ? 400 : 60;
  const uint64_t flips = asked != nullptr ? std::stoull(asked) : usual;
  const TempDir dir;
  Tally tally;
  while (tally.all() < flips) {
    Process::Options options;
    options.argv = {fs::read_symlink("/proc/self/exe"), "--no-skip",
                    "--test-case=helper: try flips"};
    options.environment["FLIPS_DIR"] = dir.path();
    options.environment["NOWCALLS_TEST_SEED"] = std::to_string(testing::SampleSeed());
    options.environment["FLIPS_BEGIN"] = std::to_string(tally.all());
    options.environment["FLIPS_END"] =
        std::to_string(std::min(flips, tally.all() + kFlipsOfAChild));
    options.stdout_path = dir.Sub("stdout");
    options.stderr_path = dir.Sub("stderr");
    Process child(options);
    std::optional<int> code;
    for (uint64_t seen = tally.all(); !(code = child.Wait(kChildMs)).has_value();) {
      const uint64_t now = Count(dir.Sub("results")).all();
      REQUIRE(now > seen);
      seen = now;
    }
    const uint64_t before = tally.all();
    if (*code != 0) {
      // An assertion of RocksDB, while the ledger was read.
      const std::string results = ReadFileToString(dir.Sub("results"));
      CAPTURE(results.substr(results.size() - std::min<size_t>(results.size(), 200)));
      CAPTURE(ReadFileToString(dir.Sub("stdout")));
      CAPTURE(ReadFileToString(dir.Sub("stderr")));
      REQUIRE(*code == kExitCorruption);
      std::ofstream(dir.Sub("results"), std::ios::app) << "died"
                                                       << "\n"
                                                       << std::flush;
    }
    tally = Count(dir.Sub("results"));
    REQUIRE(tally.all() > before);
  }
  MESSAGE(flips, " flips: ", tally.refused, " refused, ", tally.asserted,
          " refused by an assertion, ", tally.same, " without effect");
  for (const std::string& line : tally.different) FAIL_CHECK(line);
  CHECK(tally.all() == flips);
  CHECK(tally.refused > flips / 3);
}

// A bit of every byte of a small log, read as a tool reads it.
TEST_CASE("a small log of which any bit has changed is the same or is refused") {
  const TempDir dir;
  const Dump expected = MakeLedger(0, dir.path());
  const std::string log = LedgerFiles(dir.path(), ".log").back();
  const uint64_t size = SizeOf(log);
  REQUIRE(size < 8'000);
  uint64_t refused = 0;
  const std::vector<uint64_t> places = testing::SampleOf(size, 300);
  for (const uint64_t at : places) {
    const int mask = 1 << (at % 8);
    FlipByte(log, at, mask);
    const Outcome outcome = OutcomeOf(LedgerReader::Open(dir.path()), expected);
    CAPTURE(at);
    CHECK(outcome == Outcome::kRefused);
    refused += outcome == Outcome::kRefused ? 1 : 0;
    FlipByte(log, at, mask);
  }
  CHECK(refused == places.size());
}

TEST_CASE("a log cut off at any byte of its last records is refused, for the witness knows them") {
  const TempDir dir;
  const Dump expected = MakeLedger(0, dir.path());
  const std::string log = LedgerFiles(dir.path(), ".log").back();
  const std::string whole = ReadFileToString(log);
  for (const uint64_t size : testing::SampleOf(whole.size(), 200)) {
    if (size == 0) continue;
    WriteStringToFile(log, whole.substr(0, size));
    CAPTURE(size);
    CHECK(OutcomeOf(LedgerReader::Open(dir.path()), expected) == Outcome::kRefused);
    if (size % 50 < 2) {
      CHECK(OutcomeOf(RocksStore::Open(dir.path(), SyncedOptions()), expected) ==
            Outcome::kRefused);
    }
  }
  WriteStringToFile(log, whole);
  CHECK(Try(dir.path(), expected) == Outcome::kSame);
}

// What nothing can tell: a batch that came after the last write of the witness.
TEST_CASE("a log cut off behind what the witness knows has all that it knows") {
  const TempDir dir;
  LedgerScript script(100);
  std::vector<Dump> states = {{}};
  uint64_t known = 0;
  std::string log;
  {
    const auto store = RocksStore::Open(dir.path(), SyncedOptions());
    REQUIRE(store.ok());
    for (int i = 0; i < 5; ++i) {
      CommitMany(&script, 1, 8, store->get());
      states.push_back(script.Expected());
      if (i != 2) continue;
      known = script.batch_number();
      REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] {
        WriteStringToFile(dir.Sub("witness"), ReadFileToString(dir.Sub("ledger/witness")));
        const auto found = ledger::DecodeWitnessFile(ReadFileToString(dir.Sub("witness")));
        return !found.damaged && found.witness.has_value() && found.witness->batch_number == known;
      }));
    }
    log = LedgerFiles(dir.path(), ".log").back();
  }
  fs::copy(dir.Sub("witness"), dir.Sub("ledger/witness"), fs::copy_options::overwrite_existing);
  std::set<uint64_t> opened;
  const std::string whole = ReadFileToString(log);
  for (const uint64_t size : testing::SampleOf(whole.size() + 1, 300)) {
    WriteStringToFile(log, whole.substr(0, size));
    CAPTURE(size);
    auto reader = LedgerReader::Open(dir.path());
    if (!reader.ok()) continue;
    const Dump dump = DumpOf(reader->get());
    CHECK(DifferenceOf(dump, states[BatchNumberOf(dump)]) == "");
    opened.insert(BatchNumberOf(dump));
  }
  // Each batch behind the witness was the last one of some cut, and none before it was.
  REQUIRE(known == 3);
  CHECK(opened == std::set<uint64_t>{3, 4, 5});
}

}  // namespace
}  // namespace nowcalls::store
