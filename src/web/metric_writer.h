// MetricWriter: the text formats of Prometheus (0.0.4) and OpenMetrics (1.0.0).
//
// Thread: one. Begin a family once; its samples follow.
#ifndef NOWCALLS_WEB_METRIC_WRITER_H_
#define NOWCALLS_WEB_METRIC_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nowcalls::web {

enum class MetricFormat : uint8_t { kPrometheus, kOpenMetrics };
enum class MetricType : uint8_t { kGauge, kCounter, kHistogram };

MetricFormat FormatFor(std::string_view accept);
std::string_view ContentTypeOf(MetricFormat format);

// A label set: {flow_id="7",namespace="shop"}. Values may be any bytes.
class Labels {
 public:
  Labels() = default;
  Labels(std::initializer_list<std::pair<std::string_view, std::string_view>> labels);
  Labels With(std::string_view name, std::string_view value) const;
  const std::string& text() const { return text_; }  // Without the braces.

 private:
  std::string text_{};
};

class MetricWriter {
 public:
  explicit MetricWriter(MetricFormat format) : format_(format) {}

  // Only counts the samples' bytes from now on.
  void CountOnly() { counts_only_ = true; }
  size_t counted_bytes() const { return counted_bytes_; }

  // `name` without the _total of a counter. `help` is one line.
  void Family(std::string_view name, MetricType type, std::string_view help);
  void Sample(const Labels& labels, double value);
  void Sample(const Labels& labels, uint64_t value);
  // `upto`: cumulative counts at `bounds`, in seconds.
  void Histogram(const Labels& labels, std::span<const double> bounds,
                 std::span<const uint64_t> upto, uint64_t count, double sum_s);

  size_t bytes() const { return text_.size(); }
  // Take: the text since the last Take. Finish appends the end of the format.
  std::string Take();
  void Finish();

 private:
  void Line(std::string_view suffix, const Labels& labels, std::string_view value);
  bool Counts(const Labels& labels, size_t lines);

  const MetricFormat format_;
  bool counts_only_ = false;
  size_t counted_bytes_ = 0;
  std::string name_{};  // Of the family.
  MetricType type_ = MetricType::kGauge;
  std::string text_{};
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_METRIC_WRITER_H_
