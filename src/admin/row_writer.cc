#include "admin/row_writer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/shown_text.h"
#include "base/text.h"

namespace nowcalls::admin {
namespace {

constexpr size_t kSampledRows = 200;
// Where lines have any length, a longer cell pushes its own line to the right rather than widening
// every line.
constexpr size_t kSampledWidthMax = 40;
// Text is shortened to no less.
constexpr size_t kTextWidthMin = 8;
constexpr char kEllipsis[] = "\u2026";

// Integers in full, doubles as the shortest text that reads back as the same value.
template <typename Number>
void AppendNumber(Number value, std::string* out) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out->append(digits, static_cast<size_t>(end - digits));
}

// Cells of any kind but text, as jsonl and csv have them.
void AppendRaw(const Cell& cell, std::string_view absent, std::string* out) {
  if (const auto* number = std::get_if<int64_t>(&cell)) {
    AppendNumber(*number, out);
  } else if (const auto* id = std::get_if<uint64_t>(&cell)) {
    AppendNumber(*id, out);
  } else if (const auto* real = std::get_if<double>(&cell)) {
    AppendNumber(*real, out);
  } else if (const auto* flag = std::get_if<bool>(&cell)) {
    *out += *flag ? "true" : "false";
  } else {
    *out += absent;
  }
}

// JSON has no other numbers.
Cell Finite(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return Text("NaN");
  return Text(value > 0 ? "Infinity" : "-Infinity");
}

// A value as a number, a flag or a text; any other cell as it is.
Cell Plain(const Cell& cell) {
  const auto* const param = std::get_if<Param>(&cell);
  if (param == nullptr) return cell;
  const char* const bytes = param->bytes.data();
  switch (param->type) {
    case ParamType::kInt: return int64_t{LoadBigEndian<int32_t>(bytes)};
    case ParamType::kLong: return LoadBigEndian<int64_t>(bytes);
    case ParamType::kByte: return int64_t{LoadBigEndian<int8_t>(bytes)};
    case ParamType::kShort: return int64_t{LoadBigEndian<int16_t>(bytes)};
    case ParamType::kDouble: return Finite(std::bit_cast<double>(LoadBigEndian<uint64_t>(bytes)));
    case ParamType::kFloat: return Finite(std::bit_cast<float>(LoadBigEndian<uint32_t>(bytes)));
    case ParamType::kBoolean: return *bytes != 0;
    case ParamType::kString: break;
  }
  return Text(param->bytes);
}

class JsonlWriter : public RowWriter {
 public:
  JsonlWriter(const std::vector<ColumnInfo>& columns, Output* out) : out_(out) {
    for (const ColumnInfo& column : columns) {
      // jq and JavaScript round numbers beyond 2^53, so these ids are strings.
      quoted_.push_back(column.kind == Kind::kDigits);
      std::string prefix = prefixes_.empty() ? "{" : ",";
      AppendJsonString(column.name, &prefix);
      prefixes_.push_back(prefix + ":");
    }
  }

  void Write(std::span<const Cell> cells) override {
    line_.clear();
    for (size_t i = 0; i < cells.size(); ++i) {
      // The key with its quotes is the same in every row.
      line_ += prefixes_[i];
      const Cell cell = Plain(cells[i]);
      if (const auto* text = std::get_if<std::string_view>(&cell)) {
        AppendJsonString(*text, &line_);
      } else {
        const bool quoted = quoted_[i] && !std::holds_alternative<std::monostate>(cell);
        if (quoted) line_ += '"';
        AppendRaw(cell, "null", &line_);
        if (quoted) line_ += '"';
      }
    }
    line_ += "}\n";
    out_->Write(line_);
  }

  void Finish() override {}

 private:
  Output* out_;
  std::vector<std::string> prefixes_;
  std::vector<bool> quoted_;
  std::string line_;
};

// Text that a spreadsheet would run as a formula (OWASP, "CSV injection"). The ids @HOST:PORT of
// sessions without a client id are none.
bool IsFormula(std::string_view text) {
  if (text.empty()) return false;
  if (text.front() == '@')
    return text.size() > 1 && text[1] != '[' && (text[1] < '0' || text[1] > '9');
  return std::string_view("=+-\t\r").find(text.front()) != std::string_view::npos;
}

void AppendCsvText(std::string_view text, std::string* out) {
  // An apostrophe in front makes a spreadsheet take it for text.
  std::string harmless;
  if (IsFormula(text)) {
    harmless = "'" + std::string(text);
    text = harmless;
  }
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    *out += text;
    return;
  }
  *out += '"';
  for (const char c : text) {
    if (c == '"') *out += '"';
    *out += c;
  }
  *out += '"';
}

class CsvWriter : public RowWriter {
 public:
  CsvWriter(const std::vector<ColumnInfo>& columns, Output* out) : out_(out) {
    std::vector<Cell> header;
    header.reserve(columns.size());
    for (const ColumnInfo& column : columns) header.emplace_back(column.name);
    WriteLine(header);
  }

  void Write(std::span<const Cell> cells) override { WriteLine(cells); }
  void Finish() override {}

 private:
  void WriteLine(std::span<const Cell> cells) {
    line_.clear();
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line_ += ',';
      const Cell cell = Plain(cells[i]);
      if (const auto* text = std::get_if<std::string_view>(&cell)) {
        AppendCsvText(out_->on_terminal() ? ShownText(*text) : std::string(*text), &line_);
      } else {
        AppendRaw(cell, "", &line_);
      }
    }
    line_ += '\n';
    out_->Write(line_);
  }

  Output* out_;
  std::string line_;
};

// What a person sees of a cell.
std::string HumanCell(const Cell& cell, Kind kind, int64_t now_ms) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) return TerminalText(*text);
  if (const auto* param = std::get_if<Param>(&cell)) return ShownParam(*param);
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "yes" : "no";
  if (const auto* ms = std::get_if<int64_t>(&cell)) {
    if (kind == Kind::kDuration) return HumanDuration(*ms);
    // An instant of the future may come from a clock that was set back: age 0.
    if (kind == Kind::kAge) return HumanDuration(std::max<int64_t>(0, MsSince(*ms, now_ms)));
    if (kind == Kind::kUntil) return HumanDuration(MsSince(now_ms, *ms));
  }
  std::string raw;
  AppendRaw(cell, "-", &raw);
  return raw;
}

// Columns a terminal needs for printable UTF-8, taking each character for one.
size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// The first `width` characters of printable UTF-8, the last of them an ellipsis if there are more.
std::string Clipped(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  size_t end = 0;
  // Whole characters only: a cut one would break the line's UTF-8.
  for (size_t characters = 0; characters + 1 < width; ++characters) {
    ++end;
    while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
  }
  return std::string(text.substr(0, end)) + kEllipsis;
}

class TableWriter : public RowWriter {
 public:
  TableWriter(const std::vector<ColumnInfo>& columns, int64_t now_ms, Output* out)
      : now_ms_(now_ms), out_(out) {
    std::vector<std::string> titles;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].title.empty()) continue;
      shown_.push_back({columns[i].kind, columns[i].rank, /*cell=*/i, /*width=*/0,
                        /*needed=*/!columns[i].rare});
      titles.emplace_back(columns[i].title);
    }
    Hold(std::move(titles));
  }

  void Write(std::span<const Cell> cells) override {
    std::vector<std::string> row;
    row.reserve(shown_.size());
    for (Shown& column : shown_) {
      const Cell& cell = cells[column.cell];
      row.push_back(HumanCell(cell, column.kind, now_ms_));
      const bool is_first = held_.size() <= 1;  // Behind the titles.
      const bool differs = !is_first && std::holds_alternative<std::string_view>(cell) &&
                           row.back() != held_[1][row.size() - 1];
      if (IsAboveOne(cell) || differs) column.needed = true;
    }
    if (streaming_) {
      Print(row);
    } else {
      Hold(std::move(row));
      if (held_.size() > kSampledRows) Finish();
    }
  }

  void Finish() override {
    // The order: rare columns leave first, since the others may fit without them. Then the widths
    // are final, and rows stream.
    if (!streaming_) LeaveOutRare();
    if (!streaming_ && out_->columns() > 0) Fit();
    streaming_ = true;
    for (auto& row : held_) Print(row);
    held_.clear();
  }

 private:
  struct Shown {
    Kind kind;
    uint8_t rank;
    size_t cell;  // Its place among the cells of a row.
    size_t width;
    bool needed;  // Not a rare one, or a row so far has a number above 1 or another text there.
  };

  static bool IsText(const Shown& column) {
    return column.kind == Kind::kText || column.kind == Kind::kWholeText ||
           column.kind == Kind::kFlag;
  }

  void Hold(std::vector<std::string> row) {
    // Titles count in full. With a known line width all rows do, since Fit narrows them later.
    const size_t width_max = held_.empty() || out_->columns() > 0 ? SIZE_MAX : kSampledWidthMax;
    for (size_t i = 0; i < row.size(); ++i) {
      shown_[i].width = std::max(shown_[i].width, std::min(DisplayWidth(row[i]), width_max));
    }
    held_.push_back(std::move(row));
  }

  size_t LineWidth() const {
    size_t width = 2 * (shown_.size() - 1);
    for (const Shown& column : shown_) width += column.width;
    return width;
  }

  static bool IsAboveOne(const Cell& cell) {
    if (const auto* number = std::get_if<int64_t>(&cell)) return *number > 1;
    const auto* const number = std::get_if<uint64_t>(&cell);
    return number != nullptr && *number > 1;
  }

  void LeaveOut(size_t at) {
    shown_.erase(shown_.begin() + static_cast<ptrdiff_t>(at));
    for (auto& row : held_) row.erase(row.begin() + static_cast<ptrdiff_t>(at));
  }

  void LeaveOutRare() {
    for (size_t i = shown_.size(); i > 0; --i) {
      if (!shown_[i - 1].needed) LeaveOut(i - 1);
    }
  }

  // Leaves out columns, then narrows the widest text, until a line has room.
  void Fit() {
    while (LineWidth() > out_->columns()) {
      const auto last =
          std::max_element(shown_.begin(), shown_.end(),
                           [](const Shown& a, const Shown& b) { return a.rank < b.rank; });
      // Only columns that always stay are left: shorten text instead.
      if (last->rank == 0) break;
      LeaveOut(static_cast<size_t>(last - shown_.begin()));
    }
    while (LineWidth() > out_->columns()) {
      Shown* widest = nullptr;
      for (Shown& column : shown_) {
        if (column.kind != Kind::kText || column.width <= kTextWidthMin) continue;
        if (widest == nullptr || column.width > widest->width) widest = &column;
      }
      // Nothing can be narrowed any more: lines are longer than the terminal.
      if (widest == nullptr) break;
      --widest->width;
    }
  }

  void Print(const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < shown_.size(); ++i) {
      if (i > 0) line += "  ";
      const bool clip = out_->columns() > 0 && shown_[i].kind == Kind::kText;
      const std::string cell = clip ? Clipped(row[i], shown_[i].width) : row[i];
      const size_t width = DisplayWidth(cell);
      const std::string padding(shown_[i].width > width ? shown_[i].width - width : 0, ' ');
      line += IsText(shown_[i]) ? cell + padding : padding + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    line += '\n';
    out_->Write(line);
  }

  const int64_t now_ms_;
  Output* out_;
  std::vector<Shown> shown_;
  std::vector<std::vector<std::string>> held_;  // Titles and rows, until the widths are chosen.
  bool streaming_ = false;
};

class DetailWriter : public RowWriter {
 public:
  DetailWriter(const std::vector<ColumnInfo>& columns, int64_t now_ms, Output* out)
      : columns_(columns), now_ms_(now_ms), out_(out) {
    for (const ColumnInfo& column : columns_) width_ = std::max(width_, Label(column).size());
  }

  void Write(std::span<const Cell> cells) override {
    if (std::exchange(has_rows_, true)) out_->Write("\n");
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string line = Label(columns_[i]);
      line.resize(width_ + 2, ' ');
      out_->Write(line + HumanCell(cells[i], columns_[i].kind, now_ms_) + "\n");
    }
  }

  void Finish() override {}

 private:
  // Instants and durations are not shown in milliseconds here, so their names must not say so.
  static std::string Label(const ColumnInfo& column) {
    std::string label(column.name);
    const bool time = column.kind != Kind::kNumber && label.ends_with("_ms");
    if (time) label.resize(label.size() - 3);
    if (column.kind == Kind::kAge) label += "_ago";
    return label;
  }

  const std::vector<ColumnInfo> columns_;
  const int64_t now_ms_;
  Output* out_;
  size_t width_ = 0;
  bool has_rows_ = false;
};

}  // namespace

std::unique_ptr<RowWriter> MakeRowWriter(Format format, const std::vector<ColumnInfo>& columns,
                                         int64_t now_ms, Output* out) {
  switch (format) {
    case Format::kTable: return std::make_unique<TableWriter>(columns, now_ms, out);
    case Format::kJsonl: return std::make_unique<JsonlWriter>(columns, out);
    case Format::kCsv: return std::make_unique<CsvWriter>(columns, out);
    case Format::kDetail: break;
  }
  return std::make_unique<DetailWriter>(columns, now_ms, out);
}

void AppendJsonString(std::string_view text, std::string* out) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  // Nearly all names and ids are plain ASCII and need no escape.
  if (std::all_of(text.begin(), text.end(), plain)) {
    *out += '"';
    *out += text;
    *out += '"';
  } else {
    using nlohmann::json;
    *out += ShownJson(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

}  // namespace nowcalls::admin
