// RowWriter: rows of cells as a table, JSON lines or CSV.
//
// Thread: one. A table holds its first rows only, to choose widths.
#ifndef NOWCALLS_ADMIN_ROW_WRITER_H_
#define NOWCALLS_ADMIN_ROW_WRITER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "admin/output.h"
#include "nowcalls/param.h"

namespace nowcalls::admin {

enum class Format {
  kTable,   // For people: titles, human durations, "-" for what is absent.
  kJsonl,   // One JSON object a line; null for what is absent.
  kCsv,     // RFC 4180, header, \n; empty: absent. On a terminal text as in tables.
  kDetail,  // For people: one "name  value" line a column; empty lines between rows.
};

enum class Kind {
  kText,
  kWholeText,  // Never shortened.
  kFlag,       // yes or no; true or false in jsonl and csv.
  kNumber,
  kDigits,    // A number that JSON readers may round, so a string in jsonl.
  kDuration,  // Milliseconds; "2m13s" for people.
  kAge,       // An instant of the ledger clock; for people the time since.
  kUntil,     // An instant of the ledger clock; for people the time left.
};

struct ColumnInfo {
  std::string_view name;   // Key in jsonl and details, header in csv.
  std::string_view title;  // Header in tables. Empty: not shown there.
  Kind kind = Kind::kText;
  // The highest rank is left out first; 0 always stays.
  uint8_t rank = 0;
  // A table shows it only if its first rows have a number above 1, or texts differ.
  bool rare = false;
};

// monostate: absent. A Param is a number, a flag or a text in jsonl and csv; people see its type.
using Cell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view, Param>;
inline Cell Text(std::string_view text) { return text; }

class RowWriter {
 public:
  virtual ~RowWriter() = default;
  // As many as the columns.
  virtual void Write(std::span<const Cell> cells) = 0;
  // Call once, after the last row.
  virtual void Finish() = 0;
};

// `now_ms`: the ledger clock for ages.
std::unique_ptr<RowWriter> MakeRowWriter(Format format, const std::vector<ColumnInfo>& columns,
                                         int64_t now_ms, Output* out);

// With quotes; U+FFFD replaces bytes that are not UTF-8.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ROW_WRITER_H_
