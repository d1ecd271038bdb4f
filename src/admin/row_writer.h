// RowWriter: rows of cells to text, as an aligned table, JSON lines or CSV.
//
// Thread: one. One writer serves every listing, live or offline; columns.h says what the columns
// are. Rows stream: a table looks at its first rows to choose widths and holds no more than those.
// A table fits the columns of its Output: it leaves out columns by rank, then shortens text.
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
  kCsv,     // RFC 4180 with a header; lines end with \n. Empty for what is absent. On a terminal,
            // text is shown as in tables.
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
  // A table that has no room leaves the highest rank out first; 0 always stays.
  uint8_t rank = 0;
  // A table shows the column only if a number of its first rows is above 1, or their texts differ.
  bool rare = false;
};

// monostate: absent. A Param is a value of any type: a number, a flag or a text in jsonl and csv;
// people see which.
using Cell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view, Param>;
inline Cell Text(std::string_view text) { return text; }

class RowWriter {
 public:
  virtual ~RowWriter() = default;
  // `cells` are as many as the columns; views in them need to live only until the return.
  virtual void Write(std::span<const Cell> cells) = 0;
  // Writes what is still held. Call once, behind the last row.
  virtual void Finish() = 0;
};

// `now_ms` is what ages count from, on the ledger clock.
std::unique_ptr<RowWriter> MakeRowWriter(Format format, const std::vector<ColumnInfo>& columns,
                                         int64_t now_ms, Output* out);

// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ROW_WRITER_H_
