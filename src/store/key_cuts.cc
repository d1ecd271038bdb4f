#include "store/key_cuts.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace nowcalls::store {
namespace {

// At a place the bytes for each number become more, or less again.
using Change = std::pair<KeyPrefix, double>;

std::vector<Change> ChangesOf(const std::vector<FileRange>& files, KeyPrefix from) {
  std::vector<Change> changes;
  for (const FileRange& file : files) {
    const KeyPrefix end = file.last == kKeyPrefixMax ? file.last : file.last + 1;
    if (end <= from || end <= file.first) continue;
    const double density = static_cast<double>(file.bytes) / static_cast<double>(end - file.first);
    changes.emplace_back(std::max(file.first, from), density);
    changes.emplace_back(end, -density);
  }
  std::sort(changes.begin(), changes.end());
  return changes;
}

// Calls visit(begin, end, density) for each piece between two changes.
template <typename Visit>
void ForEachPiece(const std::vector<Change>& changes, const Visit& visit) {
  double density = 0;
  for (size_t i = 0; i + 1 < changes.size(); ++i) {
    density += changes[i].second;
    // A sum that should be 0 may be a little less.
    if (changes[i].first < changes[i + 1].first && density > 0) {
      visit(changes[i].first, changes[i + 1].first, density);
    }
  }
}

}  // namespace

KeyPrefix PrefixOf(std::string_view key) {
  char bytes[sizeof(KeyPrefix)] = {};
  std::copy_n(key.data(), std::min(key.size(), sizeof(bytes)), bytes);
  return KeyPrefix{LoadBigEndian<uint64_t>(bytes)} << 64 | LoadBigEndian<uint64_t>(bytes + 8);
}

std::string KeyOf(KeyPrefix prefix) {
  char bytes[sizeof(prefix)];
  StoreBigEndian(bytes, static_cast<uint64_t>(prefix >> 64));
  StoreBigEndian(bytes + 8, static_cast<uint64_t>(prefix));
  return std::string(bytes, sizeof(bytes));
}

std::vector<KeyPrefix> EvenCuts(const std::vector<FileRange>& files, KeyPrefix from, size_t parts) {
  const std::vector<Change> changes = ChangesOf(files, from);
  double all = 0;
  ForEachPiece(changes, [&](KeyPrefix begin, KeyPrefix end, double density) {
    all += static_cast<double>(end - begin) * density;
  });
  std::vector<KeyPrefix> cuts;
  double before = 0;  // Bytes up to the piece.
  ForEachPiece(changes, [&](KeyPrefix begin, KeyPrefix end, double density) {
    const double bytes = static_cast<double>(end - begin) * density;
    for (size_t part = cuts.size() + 1; part < parts; ++part) {
      const double wanted = all / static_cast<double>(parts) * static_cast<double>(part) - before;
      if (wanted >= bytes) break;
      const double place = std::max(wanted, 0.0) / density;
      const bool within = place < static_cast<double>(end - begin);
      cuts.push_back(within ? begin + static_cast<KeyPrefix>(place) : end - 1);
    }
    before += bytes;
  });
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  if (!cuts.empty() && cuts.front() == from) cuts.erase(cuts.begin());
  return cuts;
}

}  // namespace nowcalls::store
