#include "wire/figures.h"

#include <algorithm>
#include <cstddef>

#include "wire/packing.h"

namespace nowcalls::wire {
namespace {

// "counts" of "counts.tokens"; empty for a name without a group.
std::string_view GroupOf(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

// The rows at the front that make one pair of the outer map: a group, or a row without one.
size_t RowsOfPair(std::span<const FigureRow> rows) {
  const std::string_view group = GroupOf(rows.front().name);
  if (group.empty()) return 1;
  const auto end = std::find_if(rows.begin(), rows.end(), [group](const FigureRow& row) {
    return GroupOf(row.name) != group;
  });
  return static_cast<size_t>(end - rows.begin());
}

// A map's head has its size, so groups are counted before the first is packed.
uint32_t PairsOf(std::span<const FigureRow> rows) {
  uint32_t pairs = 0;
  for (; !rows.empty(); ++pairs) rows = rows.subspan(RowsOfPair(rows));
  return pairs;
}

// One overload for each alternative of FigureValue: a new one without an overload does not compile.
class ValuePacker {
 public:
  explicit ValuePacker(Packer* packer) : packer_(packer) {}

  void operator()(std::monostate /*unknown*/) const { packer_->pack_nil(); }
  void operator()(bool value) const { value ? packer_->pack_true() : packer_->pack_false(); }
  void operator()(int64_t value) const { packer_->pack_int64(value); }
  void operator()(uint64_t value) const { packer_->pack_uint64(value); }
  void operator()(double value) const { packer_->pack_double(value); }
  void operator()(const std::string& value) const { PackString(value, packer_); }
  void operator()(const WordCounts& counts) const {
    packer_->pack_map(static_cast<uint32_t>(counts.size()));
    for (const auto& [word, count] : counts) {
      PackString(word, packer_);
      packer_->pack_uint64(count);
    }
  }

 private:
  Packer* const packer_;
};

}  // namespace

std::string_view FigureKindName(FigureKind kind) {
  switch (kind) {
    case FigureKind::kText: return "text";
    case FigureKind::kFlag: return "flag";
    case FigureKind::kCounter: return "counter";
    case FigureKind::kMaximum: return "maximum";
    case FigureKind::kGauge: return "gauge";
    case FigureKind::kSetting: return "setting";
  }
  return "";
}

void EncodeFigures(uint32_t msgid, std::span<const FigureRow> rows, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_map(PairsOf(rows));
  // A group's rows become a map under its name; a row without a group is a pair of the outer map.
  while (!rows.empty()) {
    const size_t count = RowsOfPair(rows);
    const std::string_view group = GroupOf(rows.front().name);
    if (!group.empty()) {
      PackString(group, &packer);
      packer.pack_map(static_cast<uint32_t>(count));
    }
    for (const FigureRow& row : rows.first(count)) {
      PackString(group.empty() ? row.name : row.name.substr(group.size() + 1), &packer);
      std::visit(ValuePacker(&packer), row.value);
    }
    rows = rows.subspan(count);
  }
}

}  // namespace nowcalls::wire
