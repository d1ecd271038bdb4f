#include "web/sentinel/nodes.h"

#include <algorithm>
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

// The figures of a node: of a flow, or summed over several. Seconds are whole ones.
struct Figures {
  int64_t now_calls = 0;
  int64_t pass = 0;
  int64_t block = 0;
  int64_t success = 0;
  uint64_t held_ms = 0;  // Of the tokens that ended in the second.
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

// The figures of all flows of a snapshot: counts of the last whole second and of a minute. Nothing
// is made of a rate: a look of a fifth of a second would make five calls of one.
class FiguresOf {
 public:
  FiguresOf(const Snapshot& snapshot, const Series& series)
      : second_(snapshot.whole_second()),
        points_(series.All(snapshot.second() - kMinuteSeconds + 1, INT64_MAX)) {}

  Figures operator()(const FlowLook& flow) const {
    Figures figures;
    figures.now_calls = static_cast<int64_t>(flow.row.now_calls);
    const auto found = points_.find(wire::KeyOf(flow.row));
    if (found == points_.end()) {  // Beyond the bound of the series.
      AddSecond(PointOf(flow.came), &figures);
      AddToMinute(PointOf(flow.came), &figures);
      return figures;
    }
    for (const Point& point : found->second) {
      AddToMinute(point, &figures);
      if (point.unix_s == second_) AddSecond(point, &figures);
    }
    return figures;
  }

 private:
  static Point PointOf(const FlowTotals& came) {
    const auto fitting = [](uint64_t count) {
      return static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
    };
    return {.granted = fitting(came.granted),
            .refused = fitting(came.refused),
            .ended = fitting(came.ended),
            .exceptions = fitting(came.exceptions),
            .held_ms = came.held_ms};
  }
  static void AddSecond(const Point& point, Figures* figures) {
    figures->pass += point.granted;
    figures->block += point.refused;
    figures->success += point.ended;
    figures->held_ms += point.held_ms;
    figures->ended += point.ended;
    figures->exceptions += point.exceptions;
  }
  static void AddToMinute(const Point& point, Figures* figures) {
    figures->minute_pass += point.granted;
    figures->minute_block += point.refused;
    figures->minute_exceptions += point.exceptions;
  }

  const int64_t second_;
  const std::map<FlowKey, std::vector<Point>> points_;
};

// Adds a NodeVo's figures. "pass" is granted or passed, "block" refused or blocked, "success"
// tokens that ended, "rt" their mean hold in ms. Threads are nowCalls; Java has 32 bits for them.
// Exceptions are releases with `failed` or `timeout`.
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

// A tree's ids are unique: a flow id may have a rule of the flow and one by value.
std::string NodeIdOf(const wire::FlowRow& row) {
  const bool by_value = wire::KeyOf(row).kind == FlowKind::kValue;
  return "flow-" + std::to_string(row.flow_id) + (by_value ? "-value" : "");
}

struct Node {
  const FlowLook* flow;
  Figures figures;

  int64_t calls() const { return figures.now_calls + figures.minute_pass + figures.minute_block; }
};

std::vector<Node> NodesOf(const Snapshot& snapshot, const Series& series) {
  const FiguresOf figures_of(snapshot, series);
  std::vector<Node> nodes;
  nodes.reserve(snapshot.flows.size());
  for (const FlowLook& flow : snapshot.flows) nodes.push_back({&flow, figures_of(flow)});
  return nodes;
}

// Those with most calls, as many as an answer may have, by flow id. `idle`: also those without.
std::vector<Node> Busiest(std::vector<Node> nodes, bool idle) {
  if (!idle) std::erase_if(nodes, [](const Node& node) { return node.figures.idle(); });
  if (nodes.size() <= kNodesMax) return nodes;
  // Only the choice of the busiest, in linear time; their order is restored below.
  const auto end = nodes.begin() + kNodesMax;
  std::nth_element(nodes.begin(), end, nodes.end(),
                   [](const Node& a, const Node& b) { return a.calls() > b.calls(); });
  nodes.erase(end, nodes.end());
  std::sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
    return wire::KeyOf(a.flow->row) < wire::KeyOf(b.flow->row);
  });
  return nodes;
}

// An element at a time: a document of all of them would take ten times their text.
void AppendElement(const ordered_json& element, std::string* array) {
  if (array->size() > 1) array->push_back(',');
  *array += JsonText(element);
}

struct MetricLine {
  FlowKey flow;
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
  const std::map<FlowKey, std::vector<Point>> points =
      series.All(from_s, query.to_ms / kMsPerSecond);
  std::vector<MetricLine> lines;
  std::map<FlowKey, std::string> names;
  for (const auto& [key, of_flow] : points) {
    const FlowLook* const flow = FindFlow(snapshot, key);
    if (flow == nullptr) continue;
    const std::string resource = ResourceOf(flow->row);
    if (!query.resource.empty() && query.resource != resource) continue;
    // A bar or a control character would split the line. Pointers to values of the map stay valid.
    std::string& name = names[key] = resource;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c == '|' || c < ' '; }, '_');
    for (const Point& point : of_flow) {
      if (WasUsed(point)) lines.push_back({key, &point, &name});
    }
  }
  KeepBusiest(&lines);
  std::sort(lines.begin(), lines.end(), [](const MetricLine& a, const MetricLine& b) {
    return std::pair(a.point->unix_s, a.flow) < std::pair(b.point->unix_s, b.flow);
  });
  std::string text;
  for (const MetricLine& line : lines) AppendLine(line, &text);
  return text;
}

std::string ClusterNodes(const Snapshot& snapshot, const Series& series, bool idle) {
  std::string json = "[";
  for (const Node& of : Busiest(NodesOf(snapshot, series), idle)) {
    ordered_json node = {{"resource", ResourceOf(of.flow->row)}};
    AddFigures(of.figures, snapshot.unix_ms, &node);
    AppendElement(node, &json);
  }
  return json + "]";
}

std::string NodeTree(const Snapshot& snapshot, const Series& series) {
  // Sums are of all flows, before those with fewest calls are left out.
  std::map<std::string_view, Figures> of_namespaces;
  Figures of_machine;
  std::vector<Node> nodes = NodesOf(snapshot, series);
  for (const Node& node : nodes) {
    of_machine.Add(node.figures);
    of_namespaces[node.flow->row.name_space].Add(node.figures);
  }
  nodes = Busiest(std::move(nodes), /*idle=*/true);
  // Flows stand behind their namespace. Both lists are in the order of names, so one pass suffices.
  std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
    return a.flow->row.name_space < b.flow->row.name_space;
  });
  std::string json = "[";
  const auto append = [&](ordered_json node, const Figures& figures) {
    AddFigures(figures, snapshot.unix_ms, &node);
    AppendElement(node, &json);
  };
  const std::string root = "machine-root";
  append(TreeNode(root, nullptr, root), of_machine);
  auto node = nodes.begin();
  for (const auto& [name_space, of_namespace] : of_namespaces) {
    const std::string parent = "namespace-" + std::string(name_space);
    append(TreeNode(parent, root, std::string(name_space)), of_namespace);
    for (; node != nodes.end() && node->flow->row.name_space == name_space; ++node) {
      const wire::FlowRow& row = node->flow->row;
      append(TreeNode(NodeIdOf(row), parent, ResourceOf(row)), node->figures);
    }
  }
  return json + "]";
}

std::string ClusterMetrics(const Snapshot& snapshot, const Series& series,
                           const std::string& name_space) {
  std::vector<Node> nodes = NodesOf(snapshot, series);
  std::erase_if(nodes, [&](const Node& node) { return node.flow->row.name_space != name_space; });
  std::map<std::string, std::string> by_resource;
  for (const Node& node : Busiest(std::move(nodes), /*idle=*/true)) {
    const wire::FlowRow& row = node.flow->row;
    const std::string resource = ResourceOf(row);
    std::string& list = by_resource.try_emplace(resource, "[").first->second;
    AppendElement({{"timestamp", snapshot.unix_ms},
                   {"resourceName", resource},
                   {"flowId", row.flow_id},
                   {"passQps", static_cast<double>(node.figures.pass)},
                   {"blockQps", static_cast<double>(node.figures.block)},
                   {"rt", node.figures.rt()}},
                  &list);
  }
  std::string json = "{";
  for (const auto& [resource, list] : by_resource) {
    json += (json.size() > 1 ? "," : "") + JsonText(resource) + ":" + list + "]";
  }
  return json + "}";
}

std::map<std::string, int64_t> CallsOfNamespaces(const Snapshot& snapshot, const Series& series) {
  std::map<std::string, int64_t> calls;
  for (const Node& node : NodesOf(snapshot, series)) {
    if (!node.flow->row.rate) continue;
    calls[node.flow->row.name_space] += node.figures.pass + node.figures.block;
  }
  return calls;
}

}  // namespace nowcalls::web
