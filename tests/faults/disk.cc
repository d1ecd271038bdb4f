#include "faults/disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/prng.h"

namespace nowcalls::faults {
namespace {

namespace fs = std::filesystem;
using Kind = DiskChange::Kind;

// How much of what is pending a cut leaves.
enum class Left { kNothing, kAll, kBeginning, kAny };

Left AnyLeft(uint64_t seed, Prng* random) {
  if (seed == Disk::kSeedNothing) return Left::kNothing;
  if (seed == Disk::kSeedAll) return Left::kAll;
  // Mostly the interesting one.
  switch (random->Below(8)) {
    case 0: return Left::kNothing;
    case 1: return Left::kAll;
    case 2: return Left::kBeginning;
    default: return Left::kAny;
  }
}

Prng RandomOf(uint64_t seed, uint64_t what) { return Prng(seed * 0x9e3779b97f4a7c15 + what); }

uint64_t SizeAfter(const DiskChange& change, uint64_t size) {
  if (change.kind == Kind::kTruncate) return change.offset;
  return std::max<uint64_t>(size, change.offset + change.bytes.size());
}

// What `change` does to the bytes from `from` to `to`, which are within `content`.
void ApplyWithin(const DiskChange& change, uint64_t from, uint64_t to, std::string* content) {
  if (change.kind == Kind::kTruncate) {
    const uint64_t begin = std::max(from, change.offset);
    if (begin < to) content->replace(begin, to - begin, to - begin, '\0');
    return;
  }
  const uint64_t begin = std::max(from, change.offset);
  const uint64_t end = std::min<uint64_t>(to, change.offset + change.bytes.size());
  if (begin < end)
    content->replace(begin, end - begin, change.bytes, begin - change.offset, end - begin);
}

}  // namespace

Disk::Disk(const DiskImage& image) {
  for (const auto& [name, bytes] : image) {
    const uint64_t file = files_.size() + 1;
    files_[file].durable = bytes;
    durable_names_[name] = file;
  }
}

void Disk::Apply(const DiskChange& change) {
  switch (change.kind) {
    case Kind::kMake: files_[change.file]; [[fallthrough]];
    case Kind::kRename:
    case Kind::kDelete: pending_names_.push_back(change); break;
    case Kind::kWrite:
    case Kind::kTruncate: files_.at(change.file).pending.push_back(change); break;
    case Kind::kSyncFile: {
      File& file = files_.at(change.file);
      file.durable = CutFile(file, kSeedAll);
      file.pending.clear();
      break;
    }
    case Kind::kSyncDirectory:
      durable_names_ = NamesLeft(kSeedAll);
      pending_names_.clear();
      break;
    case Kind::kBegun:
    case Kind::kCommitted:
    case Kind::kAcknowledged: break;
  }
}

void Disk::ApplyName(const DiskChange& change, std::map<std::string, uint64_t>* names) {
  switch (change.kind) {
    case Kind::kMake: (*names)[change.name] = change.file; break;
    case Kind::kDelete: names->erase(change.name); break;
    default: {
      (*names)[change.to] = change.file;
      if (change.name == change.to) break;
      // The making of the old name may not have happened, or another file may have it.
      const auto old = names->find(change.name);
      if (old != names->end() && old->second == change.file) names->erase(old);
    }
  }
}

std::map<std::string, uint64_t> Disk::NamesLeft(uint64_t seed) const {
  Prng random = RandomOf(seed, 0);
  const Left left = AnyLeft(seed, &random);
  const uint64_t beginning = random.Below(pending_names_.size() + 1);
  std::map<std::string, uint64_t> names = durable_names_;
  for (size_t i = 0; i < pending_names_.size(); ++i) {
    const bool chosen = random.Below(2) == 0;
    const bool happened = left == Left::kAll || (left == Left::kBeginning && i < beginning) ||
                          (left == Left::kAny && chosen);
    if (happened) ApplyName(pending_names_[i], &names);
  }
  return names;
}

// Also the greatest size that it had.
uint64_t Disk::SizeLeft(const File& file, uint64_t seed, uint64_t* size_max) {
  std::vector<uint64_t> sizes = {file.durable.size()};
  for (const DiskChange& change : file.pending) sizes.push_back(SizeAfter(change, sizes.back()));
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  *size_max = *most;
  Prng random = RandomOf(seed, sizes.size());
  switch (AnyLeft(seed, &random)) {
    case Left::kNothing: return sizes.front();
    case Left::kAll: return sizes.back();
    case Left::kBeginning: return sizes[random.Below(sizes.size())];
    case Left::kAny: break;
  }
  // The one that all writes lead to is where missing sectors are within the file.
  if (random.Below(2) == 0) return sizes.back();
  return *least + random.Below(*most - *least + 1);
}

std::string Disk::CutFile(const File& file, uint64_t seed) {
  if (file.pending.empty()) return file.durable;
  uint64_t size_max = 0;
  const uint64_t size = SizeLeft(file, seed, &size_max);
  Prng random = RandomOf(seed, size_max + 1);
  const Left left = AnyLeft(seed, &random);
  const uint64_t count = file.pending.size();
  const uint64_t beginning = random.Below(count + 1);
  std::string content = file.durable;
  content.resize(size_max);
  for (uint64_t at = 0; at < size_max; at += kSectorBytes) {
    uint64_t writes = 0;
    switch (left) {
      case Left::kNothing: break;
      case Left::kAll: writes = count; break;
      case Left::kBeginning: writes = beginning; break;
      case Left::kAny:
        writes = random.Below(3) == 0 ? random.Below(count + 1) : count * random.Below(2);
    }
    const uint64_t end = std::min(at + kSectorBytes, size_max);
    for (uint64_t i = 0; i < writes; ++i) ApplyWithin(file.pending[i], at, end, &content);
  }
  content.resize(size);
  return content;
}

DiskImage Disk::CutPower(uint64_t seed) const {
  DiskImage image;
  for (const auto& [name, file] : NamesLeft(seed)) {
    const bool fixed = seed == kSeedNothing || seed == kSeedAll;
    image[name] = CutFile(files_.at(file), fixed ? seed : seed * 1'000'003 + file);
  }
  return image;
}

void WriteImage(const DiskImage& image, const std::string& path) {
  fs::create_directories(path);
  for (const auto& entry : fs::directory_iterator(path)) fs::remove_all(entry.path());
  for (const auto& [name, bytes] : image) {
    std::ofstream file(path + "/" + name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path + "/" + name);
  }
}

DiskImage ReadImage(const std::string& path) {
  DiskImage image;
  for (const auto& entry : fs::directory_iterator(path)) {
    std::ifstream file(entry.path(), std::ios::binary);
    image[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return image;
}

}  // namespace nowcalls::faults
