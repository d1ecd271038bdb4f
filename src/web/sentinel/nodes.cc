#include "web/sentinel/nodes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "web/json_text.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMsPerSecond = 1'000;
constexpr int64_t kMinuteSeconds = 60;

// What a dashboard calls a resource.
std::string ResourceOf(const wire::FlowRow& row) {
  return row.resource.empty() ? std::to_string(row.flow_id) : row.resource;
}

int64_t Rounded(double per_second) { return std::llround(std::max(per_second, 0.0)); }

// The figures of a node: of a flow, or summed over several.
struct Figures {
  int64_t now_calls = 0;
  int64_t pass = 0;
  int64_t block = 0;
  int64_t success = 0;
  uint64_t held_ms = 0;  // Of the tokens that ended in the last second.
  uint64_t ended = 0;
  int64_t minute_pass = 0;
  int64_t minute_block = 0;
  int64_t exceptions = 0;  // In the last second.
  int64_t minute_exceptions = 0;

  void Add(const Figures& other) {
    now_calls += other.now_calls;
    pass += other.pass;
    block += other.block;
    success += other.success;
    held_ms += other.held_ms;
    ended += other.ended;
    minute_pass += other.minute_pass;
    minute_block += other.minute_block;
    exceptions += other.exceptions;
    minute_exceptions += other.minute_exceptions;
  }
  int64_t rt() const { return ended == 0 ? 0 : static_cast<int64_t>(held_ms / ended); }
  bool idle() const { return now_calls == 0 && minute_pass == 0 && minute_block == 0; }
};

// The figures of all flows of a snapshot.
class FiguresOf {
 public:
  FiguresOf(const Snapshot& snapshot, const Series& series)
      : points_(series.All(snapshot.unix_ms / kMsPerSecond - kMinuteSeconds + 1,
                           snapshot.unix_ms / kMsPerSecond)) {}

  Figures operator()(const FlowLook& flow) const {
    Figures figures;
    figures.now_calls = static_cast<int64_t>(flow.row.now_calls);
    figures.pass = Rounded(flow.granted_per_s);
    figures.block = Rounded(flow.refused_per_s);
    figures.success = Rounded(flow.ended_per_s);
    const auto found = points_.find(flow.row.flow_id);
    if (found != points_.end()) {
      for (const Point& point : found->second) {
        figures.minute_pass += point.granted;
        figures.minute_block += point.refused;
        figures.minute_exceptions += point.exceptions;
        figures.exceptions = point.exceptions;
        figures.held_ms = point.held_ms;
        figures.ended = point.ended;
      }
    }
    // The series forgets flows beyond its bound.
    figures.minute_pass = std::max(figures.minute_pass, figures.pass);
    figures.minute_block = std::max(figures.minute_block, figures.block);
    return figures;
  }

 private:
  const std::map<int64_t, std::vector<Point>> points_;
};

// Adds a NodeVo's figures. Java has 32 bits for the threads.
void AddFigures(const Figures& figures, int64_t unix_ms, ordered_json* node) {
  (*node)["threadNum"] = std::min<int64_t>(figures.now_calls, INT32_MAX);
  (*node)["passQps"] = figures.pass;
  (*node)["blockQps"] = figures.block;
  (*node)["totalQps"] = figures.pass + figures.block;
  (*node)["averageRt"] = figures.rt();
  (*node)["successQps"] = figures.success;
  (*node)["exceptionQps"] = figures.exceptions;
  (*node)["oneMinutePass"] = figures.minute_pass;
  (*node)["oneMinuteBlock"] = figures.minute_block;
  (*node)["oneMinuteException"] = figures.minute_exceptions;
  (*node)["oneMinuteTotal"] = figures.minute_pass + figures.minute_block;
  (*node)["timestamp"] = unix_ms;
}

ordered_json TreeNode(std::string id, ordered_json parent_id, std::string resource) {
  return {
      {"id", std::move(id)}, {"parentId", std::move(parent_id)}, {"resource", std::move(resource)}};
}

struct MetricLine {
  int64_t flow_id;
  const Point* point;
  const std::string* resource;

  uint64_t calls() const { return uint64_t{point->granted} + point->refused + point->ended; }
};

void AppendLine(const MetricLine& line, std::string* text) {
  const Point& point = *line.point;
  const uint64_t rt = point.ended == 0 ? 0 : point.held_ms / point.ended;
  constexpr std::string_view kNothingOccupied = "|0|";
  *text += std::to_string(point.unix_s * kMsPerSecond) + '|' + *line.resource + '|' +
           std::to_string(point.granted) + '|' + std::to_string(point.refused) + '|' +
           std::to_string(point.ended) + '|' + std::to_string(point.exceptions) + '|' +
           std::to_string(rt);
  *text += kNothingOccupied;
  *text += std::to_string(point.now_calls) + "|0\n";
}

bool WasUsed(const Point& point) {
  return point.granted != 0 || point.refused != 0 || point.ended != 0 || point.now_calls != 0 ||
         point.waiting != 0;
}

void KeepBusiest(std::vector<MetricLine>* lines) {
  if (lines->size() <= MetricQuery::kLinesMax) return;
  const auto end = lines->begin() + MetricQuery::kLinesMax;
  std::nth_element(lines->begin(), end, lines->end(),
                   [](const MetricLine& a, const MetricLine& b) { return a.calls() > b.calls(); });
  lines->erase(end, lines->end());
}

}  // namespace

std::string MetricLines(const Snapshot& snapshot, const Series& series, const MetricQuery& query) {
  // Whole seconds within the window, however its ends are written.
  const int64_t from_s = query.from_ms / kMsPerSecond + (query.from_ms % kMsPerSecond > 0 ? 1 : 0);
  const std::map<int64_t, std::vector<Point>> points =
      series.All(from_s, query.to_ms / kMsPerSecond);
  std::vector<MetricLine> lines;
  std::map<int64_t, std::string> names;
  for (const auto& [flow_id, of_flow] : points) {
    const FlowLook* const flow = FindFlow(snapshot, flow_id);
    if (flow == nullptr) continue;
    const std::string resource = ResourceOf(flow->row);
    if (!query.resource.empty() && query.resource != resource) continue;
    std::string& name = names[flow_id] = resource;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c == '|' || c < ' '; }, '_');
    for (const Point& point : of_flow) {
      if (WasUsed(point)) lines.push_back({flow_id, &point, &name});
    }
  }
  KeepBusiest(&lines);
  std::sort(lines.begin(), lines.end(), [](const MetricLine& a, const MetricLine& b) {
    return std::pair(a.point->unix_s, a.flow_id) < std::pair(b.point->unix_s, b.flow_id);
  });
  std::string text;
  for (const MetricLine& line : lines) AppendLine(line, &text);
  return text;
}

std::string ClusterNodes(const Snapshot& snapshot, const Series& series, bool idle) {
  const FiguresOf figures_of(snapshot, series);
  ordered_json nodes = ordered_json::array();
  for (const FlowLook& flow : snapshot.flows) {
    const Figures figures = figures_of(flow);
    if (!idle && figures.idle()) continue;
    ordered_json node = {{"resource", ResourceOf(flow.row)}};
    AddFigures(figures, snapshot.unix_ms, &node);
    nodes.push_back(std::move(node));
  }
  return JsonText(nodes);
}

std::string NodeTree(const Snapshot& snapshot, const Series& series) {
  const FiguresOf figures_of(snapshot, series);
  std::map<std::string_view, Figures> of_namespaces;
  std::map<std::string_view, std::vector<std::pair<const FlowLook*, Figures>>> flows;
  Figures of_machine;
  for (const FlowLook& flow : snapshot.flows) {
    const Figures figures = figures_of(flow);
    of_machine.Add(figures);
    of_namespaces[flow.row.name_space].Add(figures);
    flows[flow.row.name_space].emplace_back(&flow, figures);
  }
  const std::string root = "machine-root";
  ordered_json nodes = ordered_json::array();
  nodes.push_back(TreeNode(root, nullptr, root));
  AddFigures(of_machine, snapshot.unix_ms, &nodes.back());
  for (const auto& [name_space, of_namespace] : of_namespaces) {
    const std::string parent = "namespace-" + std::string(name_space);
    nodes.push_back(TreeNode(parent, root, std::string(name_space)));
    AddFigures(of_namespace, snapshot.unix_ms, &nodes.back());
    for (const auto& [flow, figures] : flows[name_space]) {
      nodes.push_back(
          TreeNode("flow-" + std::to_string(flow->row.flow_id), parent, ResourceOf(flow->row)));
      AddFigures(figures, snapshot.unix_ms, &nodes.back());
    }
  }
  return JsonText(nodes);
}

std::string ClusterMetrics(const Snapshot& snapshot, const Series& series,
                           const std::string& name_space) {
  const FiguresOf figures_of(snapshot, series);
  std::map<std::string, ordered_json> by_resource;
  for (const FlowLook& flow : snapshot.flows) {
    if (flow.row.name_space != name_space) continue;
    const Figures figures = figures_of(flow);
    const std::string resource = ResourceOf(flow.row);
    by_resource[resource].push_back({{"timestamp", snapshot.unix_ms},
                                     {"resourceName", resource},
                                     {"flowId", flow.row.flow_id},
                                     {"passQps", flow.granted_per_s},
                                     {"blockQps", flow.refused_per_s},
                                     {"rt", figures.rt()}});
  }
  ordered_json metrics = ordered_json::object();
  for (auto& [resource, nodes] : by_resource) metrics.emplace(resource, std::move(nodes));
  return JsonText(metrics);
}

}  // namespace nowcalls::web
