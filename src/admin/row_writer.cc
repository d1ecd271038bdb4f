#include "admin/row_writer.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "admin/duration.h"
#include "base/text.h"

namespace nowcalls::admin {
namespace {

constexpr size_t kSampledRows = 200;
// A longer cell pushes its own line to the right rather than widening every line.
constexpr size_t kSampledWidthMax = 40;

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

class JsonlWriter : public RowWriter {
 public:
  JsonlWriter(const std::vector<ColumnInfo>& columns, Output* out) : out_(out) {
    for (const ColumnInfo& column : columns) {
      std::string prefix = prefixes_.empty() ? "{" : ",";
      AppendJsonString(column.name, &prefix);
      prefixes_.push_back(prefix + ":");
    }
  }

  void Write(std::span<const Cell> cells) override {
    line_.clear();
    for (size_t i = 0; i < cells.size(); ++i) {
      line_ += prefixes_[i];
      if (const auto* text = std::get_if<std::string_view>(&cells[i])) {
        AppendJsonString(*text, &line_);
      } else {
        AppendRaw(cells[i], "null", &line_);
      }
    }
    line_ += "}\n";
    out_->Write(line_);
  }

  void Finish() override {}

 private:
  Output* out_;
  std::vector<std::string> prefixes_;
  std::string line_;
};

void AppendCsvText(std::string_view text, std::string* out) {
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
      if (const auto* text = std::get_if<std::string_view>(&cells[i])) {
        AppendCsvText(*text, &line_);
      } else {
        AppendRaw(cells[i], "", &line_);
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
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "yes" : "no";
  if (const auto* ms = std::get_if<int64_t>(&cell)) {
    if (kind == Kind::kDuration) return HumanDuration(*ms);
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

class TableWriter : public RowWriter {
 public:
  TableWriter(const std::vector<ColumnInfo>& columns, int64_t now_ms, Output* out)
      : columns_(columns), now_ms_(now_ms), out_(out) {
    std::vector<std::string> titles;
    for (const ColumnInfo& column : columns_) {
      if (!column.title.empty()) titles.emplace_back(column.title);
    }
    widths_.resize(titles.size());
    Hold(std::move(titles));
  }

  void Write(std::span<const Cell> cells) override {
    std::vector<std::string> row;
    row.reserve(widths_.size());
    for (size_t i = 0; i < cells.size(); ++i) {
      if (columns_[i].title.empty()) continue;
      row.push_back(HumanCell(cells[i], columns_[i].kind, now_ms_));
    }
    if (streaming_) {
      Print(row);
    } else {
      Hold(std::move(row));
      if (held_.size() > kSampledRows) Finish();
    }
  }

  void Finish() override {
    for (const auto& row : held_) Print(row);
    held_.clear();
    streaming_ = true;
  }

 private:
  void Hold(std::vector<std::string> row) {
    for (size_t i = 0; i < row.size(); ++i) {
      const size_t width =
          held_.empty() ? DisplayWidth(row[i]) : std::min(DisplayWidth(row[i]), kSampledWidthMax);
      widths_[i] = std::max(widths_[i], width);
    }
    held_.push_back(std::move(row));
  }

  void Print(const std::vector<std::string>& row) {
    std::string line;
    size_t i = 0;
    for (const ColumnInfo& column : columns_) {
      if (column.title.empty()) continue;
      if (i > 0) line += "  ";
      const size_t width = DisplayWidth(row[i]);
      const std::string padding(widths_[i] > width ? widths_[i] - width : 0, ' ');
      const bool left = column.kind == Kind::kText || column.kind == Kind::kFlag;
      line += left ? row[i] + padding : padding + row[i];
      ++i;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    line += '\n';
    out_->Write(line);
  }

  const std::vector<ColumnInfo> columns_;
  const int64_t now_ms_;
  Output* out_;
  std::vector<size_t> widths_;                  // Of the columns that have a title.
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
  if (std::all_of(text.begin(), text.end(), plain)) {
    *out += '"';
    *out += text;
    *out += '"';
  } else {
    using nlohmann::json;
    *out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

}  // namespace nowcalls::admin
