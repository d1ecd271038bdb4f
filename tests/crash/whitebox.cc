#include "crash/whitebox.h"

#include <cctype>
#include <cmath>
#include <filesystem>

#include "faults/rocks_kill_points.h"
#include "test_paths.h"

namespace nowcalls::crash {
namespace {

namespace fs = std::filesystem;

// A start makes some hundred calls, a second of load thousands.
constexpr uint64_t kCallBits = 13;
// Lower odds always end a start at one of its first points, as low numbers of calls do.
constexpr uint64_t kOddsLowBits = 4;
constexpr uint64_t kOddsBits = 13;
// What a start reaches.
constexpr uint64_t kStartBits = 6;

// 2^low .. 2^bits, each power of two as likely as another.
uint64_t LogUniform(Prng* prng, uint64_t low, uint64_t bits) {
  const uint64_t power = low + prng->Below(bits - low);
  return (uint64_t{1} << power) + prng->Below(uint64_t{1} << power);
}

}  // namespace

std::string Whitebox::Program() {
  return std::string(NOWCALLS_TEST_BIN_DIR) + "/nowcalls-faulty-server";
}

testing::Environment Whitebox::Arm(Prng* prng) {
  // Behind one that nothing reached comes one that a start reaches.
  const bool missed = !armed_.empty() && Fired().empty();
  fs::remove(note_);
  log_bytes_ = fs::exists(log_) ? fs::file_size(log_) : 0;
  if (faults::RocksKillPointsAvailable() && prng->Below(2) == 0) {
    const std::string odds =
        std::to_string(LogUniform(prng, kOddsLowBits, missed ? kStartBits : kOddsBits));
    armed_ = "armed at RocksDB's points, 1 in " + odds;
    return {{"ROCKSDB_KILL_ODDS", odds}};
  }
  static constexpr const char* kWhen[] = {"before", "middle", "after"};
  const std::string when = kWhen[prng->Below(std::size(kWhen))];
  const std::string call = std::to_string(LogUniform(prng, 0, missed ? kStartBits : kCallBits));
  // Recovery reads much more than it writes.
  const bool writes = prng->Below(2) == 0;
  armed_ = "armed " + when + (writes ? " write " : " call ") + call;
  return {{"FAULTY_DISK", call + (writes ? " writes" : "") + " kill-" + when},
          {"FAULTY_DISK_NOTE", note_}};
}

std::string Whitebox::Fired() const {
  const std::string note = testing::ReadFileToString(note_);
  if (!note.empty()) return note.substr(note.find(' ') + 1);
  const std::string marker = "Crashing at ";
  const std::string log = testing::ReadFileToString(log_);
  const size_t at = log.find(marker, log_bytes_);
  if (at == std::string::npos) return {};
  const std::string path = log.substr(at + marker.size(), log.find('\n', at) - at - marker.size());
  return "rocksdb " + path.substr(path.rfind('/') + 1);
}

std::string Whitebox::KindOf(const std::string& fired) {
  if (fired.starts_with("rocksdb ")) return fired;
  std::string kind;
  for (const char c : fired) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) kind += c;
    if (digit && !kind.ends_with('*')) kind += '*';
  }
  return kind;
}

}  // namespace nowcalls::crash
