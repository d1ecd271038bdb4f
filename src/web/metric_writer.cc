#include "web/metric_writer.h"

#include <array>
#include <charconv>

namespace nowcalls::web {
namespace {

std::string_view TypeName(MetricType type) {
  switch (type) {
    case MetricType::kGauge: return "gauge";
    case MetricType::kCounter: return "counter";
    case MetricType::kHistogram: return "histogram";
  }
  return "";
}

void AppendEscaped(std::string_view text, std::string* out) {
  // The escapes of label values: backslash, quote and end of line, in both formats.
  for (const char c : text) {
    if (c == '\\' || c == '"') out->push_back('\\');
    if (c == '\n') {
      out->append("\\n");
    } else {
      out->push_back(c);
    }
  }
}

void AppendLabel(std::string_view name, std::string_view value, std::string* out) {
  if (!out->empty()) out->push_back(',');
  out->append(name).append("=\"");
  AppendEscaped(value, out);
  out->push_back('"');
}

std::string Printed(uint64_t value) { return std::to_string(value); }

std::string Printed(double value) {
  std::array<char, 400> digits{};  // Of the largest there is.
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  return {digits.data(), end.ptr};
}

}  // namespace

MetricFormat FormatFor(std::string_view accept) {
  const bool open = accept.find("application/openmetrics-text") != std::string_view::npos;
  return open ? MetricFormat::kOpenMetrics : MetricFormat::kPrometheus;
}

std::string_view ContentTypeOf(MetricFormat format) {
  return format == MetricFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

Labels::Labels(std::initializer_list<std::pair<std::string_view, std::string_view>> labels) {
  for (const auto& [name, value] : labels) AppendLabel(name, value, &text_);
}

Labels Labels::With(std::string_view name, std::string_view value) const {
  Labels more = *this;
  AppendLabel(name, value, &more.text_);
  return more;
}

void MetricWriter::Family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  type_ = type;
  if (counts_only_) return;
  // OpenMetrics names the family, Prometheus the samples.
  const bool total = type == MetricType::kCounter && format_ == MetricFormat::kPrometheus;
  const std::string named = name_ + (total ? "_total" : "");
  std::string escaped;
  for (const char c : help) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  text_ += "# HELP " + named + " " + escaped + "\n# TYPE " + named + " ";
  text_.append(TypeName(type)).push_back('\n');
}

void MetricWriter::Line(std::string_view suffix, const Labels& labels, std::string_view value) {
  text_.append(name_).append(suffix);
  if (!labels.text().empty()) text_.append("{").append(labels.text()).append("}");
  text_.append(" ").append(value).push_back('\n');
}

bool MetricWriter::Counts(const Labels& labels, size_t lines) {
  // A suffix, the label of a bucket, a number, and what is between them.
  constexpr size_t kRestBytes = 64;
  if (counts_only_) counted_bytes_ += lines * (name_.size() + labels.text().size() + kRestBytes);
  return counts_only_;
}

void MetricWriter::Sample(const Labels& labels, double value) {
  if (Counts(labels, 1)) return;
  Line(type_ == MetricType::kCounter ? "_total" : "", labels, Printed(value));
}

void MetricWriter::Sample(const Labels& labels, uint64_t value) {
  if (Counts(labels, 1)) return;
  Line(type_ == MetricType::kCounter ? "_total" : "", labels, Printed(value));
}

void MetricWriter::Histogram(const Labels& labels, std::span<const double> bounds,
                             std::span<const uint64_t> upto, uint64_t count, double sum_s) {
  if (Counts(labels, bounds.size() + 3)) return;
  // Both formats want the buckets in rising order, then the sum and the count.
  for (size_t i = 0; i < bounds.size(); ++i) {
    Line("_bucket", labels.With("le", Printed(bounds[i])), Printed(upto[i]));
  }
  Line("_bucket", labels.With("le", "+Inf"), Printed(count));
  Line("_sum", labels, Printed(sum_s));
  Line("_count", labels, Printed(count));
}

void MetricWriter::Finish() {
  if (format_ == MetricFormat::kOpenMetrics) text_ += "# EOF\n";
}

std::string MetricWriter::Take() { return std::exchange(text_, {}); }

}  // namespace nowcalls::web
