#include "bench/comparison.h"

#include <algorithm>
#include <utility>

namespace nowcalls::compare {
namespace {

constexpr int kRatioDigits = 2;
constexpr char kUnknown[] = "-";

std::string LimitText(const Target& target) {
  const bool least = target.kind == Target::Kind::kRatioAtLeast;
  const bool ratio = target.kind != Target::Kind::kAtMost;
  std::string limit = Decimal(target.limit, kRatioDigits);
  while (limit.ends_with('0')) limit.pop_back();
  if (limit.ends_with('.')) limit.pop_back();
  return (least ? ">= " : "<= ") + limit + (ratio ? "x" : "");
}

Json OptionalJson(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNoTarget: return "";
    case Verdict::kReached: return "reached";
    case Verdict::kMissed: return "missed";
    case Verdict::kNotMeasured: return "not measured";
  }
  return "";
}

Comparison::Comparison(std::string name, std::string title, Sides sides,
                       std::vector<FigureKind> kinds)
    : name_(std::move(name)),
      title_(std::move(title)),
      sides_(std::move(sides)),
      kinds_(std::move(kinds)) {}

void Comparison::Add(size_t side, const Values& values) { rounds_[side].push_back(values); }

void Comparison::AddOverload(size_t side, const std::string& message) {
  overloaded_[side] = true;
  notes_.push_back(sides_[side] + ": " + message);
}

std::optional<Spread> Comparison::SpreadOf(size_t side, const std::string& key) const {
  std::vector<double> values;
  for (const Values& round : rounds_[side]) {
    const auto found = round.find(key);
    if (found != round.end()) values.push_back(found->second);
  }
  return compare::SpreadOf(std::move(values));
}

Verdict Comparison::Judge(const FigureKind& kind) const {
  if (!kind.target) return Verdict::kNoTarget;
  if (overloaded_[0]) return Verdict::kMissed;
  const std::optional<Spread> own = SpreadOf(0, kind.key);
  const bool at_most = kind.target->kind == Target::Kind::kAtMost;
  std::optional<double> value;
  if (at_most && own) value = own->median;
  if (!at_most) value = Ratio(own, SpreadOf(1, kind.key));
  if (!value) return Verdict::kNotMeasured;
  const bool least = kind.target->kind == Target::Kind::kRatioAtLeast;
  const bool reached = least ? *value >= kind.target->limit : *value <= kind.target->limit;
  return reached ? Verdict::kReached : Verdict::kMissed;
}

size_t Comparison::Count(Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(kinds_.begin(), kinds_.end(),
                    [&](const FigureKind& kind) { return Judge(kind) == verdict; }));
}

std::string Comparison::SpreadCell(size_t side, const FigureKind& kind) const {
  const std::optional<Spread> spread = SpreadOf(side, kind.key);
  if (!spread) return kUnknown;
  std::string median = Decimal(spread->median, kind.digits);
  if (rounds_[side].size() < 2) return median;
  return median + "  (" + Decimal(spread->min, kind.digits) + ".." +
         Decimal(spread->max, kind.digits) + ")";
}

std::vector<std::string> Comparison::Row(const FigureKind& kind) const {
  std::vector<std::string> row = {kind.label, SpreadCell(0, kind)};
  if (has_second()) {
    row.push_back(SpreadCell(1, kind));
    const auto ratio = Ratio(SpreadOf(0, kind.key), SpreadOf(1, kind.key));
    row.push_back(ratio ? Decimal(*ratio, kRatioDigits) : kUnknown);
  }
  row.push_back(kind.target ? LimitText(*kind.target) : "");
  row.emplace_back(VerdictName(Judge(kind)));
  return row;
}

std::string Comparison::Table() const {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"", sides_[0]});
  if (has_second()) rows.back().insert(rows.back().end(), {sides_[1], "ratio"});
  rows.back().insert(rows.back().end(), {"target", ""});
  for (const FigureKind& kind : kinds_) rows.push_back(Row(kind));
  std::string text = name_ + ": " + title_ + "\n" + AlignedRows(rows, 2);
  for (const std::string& note : notes_) text += "  " + note + "\n";
  for (const std::string& failure : failures_) text += "  failed: " + failure + "\n";
  return text;
}

Json Comparison::ToJson() const {
  Json figures = Json::array();
  for (const FigureKind& kind : kinds_) {
    Json figure = {{"key", kind.key}, {"label", kind.label}};
    for (size_t side = 0; side < kSides; ++side) {
      if (sides_[side].empty()) continue;
      const std::optional<Spread> spread = SpreadOf(side, kind.key);
      if (!spread) continue;
      figure[sides_[side]] = {
          {"median", spread->median}, {"min", spread->min}, {"max", spread->max}};
    }
    if (has_second()) {
      figure["ratio"] = OptionalJson(Ratio(SpreadOf(0, kind.key), SpreadOf(1, kind.key)));
    }
    if (kind.target) {
      figure["target"] = LimitText(*kind.target);
      figure["verdict"] = VerdictName(Judge(kind));
    }
    figures.push_back(std::move(figure));
  }
  Json rounds = Json::object();
  for (size_t side = 0; side < kSides; ++side) {
    if (!sides_[side].empty()) rounds[sides_[side]] = rounds_[side];
  }
  return {{"name", name_},
          {"title", title_},
          {"figures", std::move(figures)},
          {"rounds", std::move(rounds)},
          {"notes", notes_},
          {"failures", failures_}};
}

std::string AlignedRows(const std::vector<std::vector<std::string>>& rows, size_t indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace nowcalls::compare
