// The columns of every listing, for all formats and both sources.
//
// Thread: any. A column's name is the key in jsonl and the header in csv, and stable. New columns
// go last in the raw formats.
#ifndef NOWCALLS_ADMIN_COLUMNS_H_
#define NOWCALLS_ADMIN_COLUMNS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admin/output.h"
#include "admin/row_writer.h"
#include "core/rules/rule.h"
#include "nowcalls/status.h"
#include "wire/flow_figures.h"
#include "wire/rows.h"

namespace nowcalls::admin {

struct RuleRow {
  std::string name_space;
  core::Rule rule;
  bool removed = false;  // Kept for its tokens; no listing of rules shows it.
  bool draining = false;
};

// Lives no longer than the row.
struct ListedRule {
  const RuleRow& row;
  std::string max_per_client;  // core::MaxPerClientText
  std::string limit;           // core::AmountText of the count.
};

template <typename Row>
struct Column {
  ColumnInfo info;
  // Views point into the row or to literals.
  Cell (*get)(const Row& row);
};
template <>
struct Column<wire::FlowRow> {  // Of wire::FlowFigures.
  ColumnInfo info;
  wire::FlowValue (*value)(const wire::FlowRow& row) = nullptr;

  Cell get(const wire::FlowRow& row) const;
};

// Row types: TokenRow, FlowRow, ParamRow, WaiterRow, SessionRow, HistoryRow (wire/rows.h),
// ListedRule.
template <typename Row>
std::span<const Column<Row>> ColumnsOf();
template <>
std::span<const Column<wire::TokenRow>> ColumnsOf();
template <>
std::span<const Column<wire::FlowRow>> ColumnsOf();
template <>
std::span<const Column<wire::ParamRow>> ColumnsOf();
template <>
std::span<const Column<wire::WaiterRow>> ColumnsOf();
template <>
std::span<const Column<wire::SessionRow>> ColumnsOf();
template <>
std::span<const Column<wire::HistoryRow>> ColumnsOf();
template <>
std::span<const Column<ListedRule>> ColumnsOf();

template <typename Row>
class Listing {
 public:
  Listing(Format format, int64_t now_ms, Output* out) : columns_(ColumnsOf<Row>()), out_(out) {
    std::vector<ColumnInfo> infos;
    for (const Column<Row>& column : columns_) infos.push_back(column.info);
    cells_.resize(columns_.size());
    writer_ = MakeRowWriter(format, infos, now_ms, out);
  }

  // Fails once the output has failed.
  Status Add(const Row& row) {
    for (size_t i = 0; i < columns_.size(); ++i) cells_[i] = columns_[i].get(row);
    writer_->Write(cells_);
    return out_->status();
  }

  void Finish() { writer_->Finish(); }

 private:
  std::span<const Column<Row>> columns_;
  std::vector<Cell> cells_;
  std::unique_ptr<RowWriter> writer_;
  Output* out_;
};

// Rows of `walk(sink)` before a failure are printed; without any, neither is a header.
template <typename Row, typename Walk>
Status PrintRows(Format format, int64_t now_ms, Output* out, Walk walk) {
  std::optional<Listing<Row>> listing;
  const auto begun = [&]() -> Listing<Row>& {
    return listing.has_value() ? *listing : listing.emplace(format, now_ms, out);
  };
  Status status = walk([&begun](const Row& row) { return begun().Add(row); });
  if (status.ok() || listing.has_value()) begun().Finish();
  return status;
}

// "global" or "avg_local".
std::string_view ThresholdTypeName(core::ThresholdType type);

// In Sentinel's form, the namespace in front.
std::string RuleRowToJson(const RuleRow& row);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_COLUMNS_H_
