#include "command/top_view.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "base/duration.h"
#include "base/shown_text.h"
#include "base/text.h"

namespace nowcalls::command {
namespace {

constexpr size_t kHeadLines = 3;

uint64_t Refused(const wire::FlowRow& flow) {
  return flow.counters ? flow.counters->refused.sum() : 0;
}

double Fullness(const wire::FlowRow& flow) {
  if (!flow.level || *flow.level == 0) return flow.now_calls > 0 ? 1 : 0;
  return static_cast<double>(flow.now_calls) / static_cast<double>(*flow.level);
}

std::string Since(const std::optional<int64_t>& then_ms, int64_t now_ms) {
  return then_ms ? HumanDuration(MsSince(*then_ms, now_ms)) : "-";
}

// "######....", of ten.
std::string Bar(const wire::FlowRow& flow) {
  constexpr size_t kCells = 10;
  const double full = std::clamp(Fullness(flow), 0.0, 1.0);
  const auto cells = static_cast<size_t>(std::lround(full * kCells));
  return std::string(cells, '#') + std::string(kCells - cells, '.');
}

std::string Line(const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

struct Column {
  const char* title;
  int width;   // Negative: its text begins at the left.
  int leaves;  // Which narrow screens leave it out: the lowest first; 0: none.
};
constexpr Column kColumns[] = {
    {"FLOW", 10, 0},   {" FULL", -11, 1}, {"CALLS", 9, 0},     {"LEVEL", 9, 0},
    {"WAITING", 7, 5}, {"OLDEST", 7, 3},  {"GRANTED/S", 9, 2}, {"REFUSED/S", 9, 4},
};
constexpr int kLeavesMax = 5;
constexpr size_t kResourceColumnsMax = 24;  // That other columns are left out for.

std::vector<std::string> Cells(const wire::FlowRow& flow, const TopRates& rates, int64_t now_ms) {
  return {std::to_string(flow.flow_id),
          " " + Bar(flow),
          std::to_string(flow.now_calls),
          flow.level ? std::to_string(*flow.level) : "-",
          std::to_string(flow.waiters.value_or(0)),
          Since(flow.oldest_issued_ms, now_ms),
          Line("%.0f", rates.GrantedPerSecond(wire::KeyOf(flow))),
          Line("%.0f", rates.RefusedPerSecond(wire::KeyOf(flow)))};
}

std::string Resource(const wire::FlowRow& flow) {
  return TerminalText(flow.resource) +
         (wire::KeyOf(flow).kind == FlowKind::kValue ? "  (by value)" : "") +
         (flow.draining ? "  (draining)" : "") + (flow.removed ? "  (no rule)" : "");
}

// Columns whose `leaves` is at most this are left out, so that a narrow screen shows resources.
int LeftOut(const std::vector<wire::FlowRow>& flows, size_t columns) {
  size_t needed = 0;
  for (const wire::FlowRow& flow : flows) needed = std::max(needed, Resource(flow).size());
  needed = std::min(needed, kResourceColumnsMax) + 3;  // The mark, and the gap before a resource.
  for (const Column& column : kColumns) needed += static_cast<size_t>(std::abs(column.width)) + 1;
  int left_out = 0;
  while (needed > columns && left_out <= kLeavesMax) {
    ++left_out;
    for (const Column& column : kColumns) {
      if (column.leaves == left_out) needed -= static_cast<size_t>(std::abs(column.width)) + 1;
    }
  }
  return left_out;
}

std::string Row(char mark, int left_out, const std::vector<std::string>& cells,
                const std::string& resource) {
  std::string row(1, mark);
  for (size_t i = 0; i < cells.size(); ++i) {
    const Column& column = kColumns[i];
    if (column.leaves != 0 && column.leaves <= left_out) continue;
    row += Line(" %*s", column.width, cells[i].c_str());
  }
  return row + "  " + resource;
}

std::string HeadRow(int left_out) {
  std::vector<std::string> titles;
  for (const Column& column : kColumns) titles.emplace_back(column.title);
  return Row(' ', left_out, titles, "RESOURCE");
}

// The holder of a token or a wait. The instance tells processes of one client id apart.
template <typename Row>
std::string Holder(const Row& row) {
  const std::string instance = row.instance ? " #" + std::to_string(*row.instance) : "";
  return TerminalText(row.client_id) + instance;
}

std::vector<std::string> Details(const TopSnapshot& snapshot, int64_t flow) {
  std::vector<std::string> lines = {
      "", Line("  flow %" PRId64 ": %zu holders, the oldest first", flow, snapshot.tokens.size())};
  for (const wire::TokenRow& token : snapshot.tokens) {
    lines.push_back(Line("    %6u  for %8s  left %8s  ", token.count,
                         Since(token.issued_ms, snapshot.ledger_ms).c_str(),
                         HumanDuration(token.deadline_ms - snapshot.ledger_ms).c_str()) +
                    Holder(token) + (token.online.value_or(true) ? "" : "  offline"));
  }
  lines.push_back(Line("  %zu waiters, the next first", snapshot.waiters.size()));
  for (const wire::WaiterRow& waiter : snapshot.waiters) {
    lines.push_back(Line("    %6u  for %8s  left %8s  ", waiter.count,
                         Since(waiter.since_ms, snapshot.ledger_ms).c_str(),
                         HumanDuration(waiter.deadline_ms - snapshot.ledger_ms).c_str()) +
                    Holder(waiter) + (waiter.prioritized ? "  prioritized" : ""));
  }
  return lines;
}

std::string Head(const TopSnapshot& snapshot, const TopState& state) {
  uint64_t now_calls = 0;
  uint64_t waiters = 0;
  for (const wire::FlowRow& flow : snapshot.flows) {
    now_calls += flow.now_calls;
    waiters += flow.waiters.value_or(0);
  }
  return "nowcalls " + ShownText(state.server) + ": " + std::to_string(snapshot.flows.size()) +
         " flows, " + std::to_string(now_calls) + " calls in progress, " + std::to_string(waiters) +
         " waiting";
}

// Cuts a line behind `columns` characters of UTF-8, each of one column.
void Cut(size_t columns, std::string* line) {
  size_t shown = 0;
  for (size_t i = 0; i < line->size(); ++i) {
    const bool begins = (static_cast<unsigned char>((*line)[i]) & 0xc0) != 0x80;
    if (begins && ++shown > columns) return line->resize(i);
  }
}

}  // namespace

void TopRates::Take(const TopSnapshot& snapshot) {
  const double seconds = static_cast<double>(snapshot.ledger_ms - ledger_ms_) / 1000;
  std::map<FlowKey, Rate> rates;
  for (const wire::FlowRow& flow : snapshot.flows) {
    Rate& rate = rates[wire::KeyOf(flow)];
    rate.granted = flow.counters ? flow.counters->granted : 0;
    rate.refused = Refused(flow);
    const auto before = rates_.find(wire::KeyOf(flow));
    // A restarted server counts from 0: no rate until the next snapshot.
    if (before == rates_.end() || seconds <= 0 || rate.granted < before->second.granted) continue;
    if (rate.refused < before->second.refused) continue;
    rate.granted_per_s = static_cast<double>(rate.granted - before->second.granted) / seconds;
    rate.refused_per_s = static_cast<double>(rate.refused - before->second.refused) / seconds;
  }
  rates_ = std::move(rates);
  ledger_ms_ = snapshot.ledger_ms;
}

void SortFlows(TopOrder order, const TopRates& rates, std::vector<wire::FlowRow>* flows) {
  const auto key = [&](const wire::FlowRow& flow) {
    const double waiters = static_cast<double>(flow.waiters.value_or(0));
    const FlowKey of = wire::KeyOf(flow);
    switch (order) {
      case TopOrder::kFullest: return std::tuple(-Fullness(flow), -waiters, of);
      case TopOrder::kBusiest:
        return std::tuple(-rates.GrantedPerSecond(of) - rates.RefusedPerSecond(of), -waiters, of);
      case TopOrder::kFlow: break;
    }
    return std::tuple(0.0, 0.0, of);
  };
  std::sort(flows->begin(), flows->end(),
            [&](const wire::FlowRow& a, const wire::FlowRow& b) { return key(a) < key(b); });
}

std::vector<std::string> TopLines(const TopSnapshot& snapshot, const TopRates& rates,
                                  const TopState& state, size_t rows, size_t columns) {
  const int left_out = LeftOut(snapshot.flows, columns);
  std::vector<std::string> lines = {Head(snapshot, state), ShownText(state.problem),
                                    HeadRow(left_out)};
  std::vector<std::string> details;
  if (state.chosen != 0) details = Details(snapshot, state.chosen);
  const size_t room = rows > kHeadLines ? rows - kHeadLines : 0;
  // Below the head, the list keeps at least half of the room; the selected row is always in view.
  const size_t for_details = std::min(details.size(), room / 2);
  const size_t shown = std::min(snapshot.flows.size(), room - for_details);
  const size_t first = state.selected < shown ? 0 : state.selected - shown + 1;
  for (size_t i = first; i < first + shown && i < snapshot.flows.size(); ++i) {
    const wire::FlowRow& flow = snapshot.flows[i];
    lines.push_back(Row(i == state.selected ? '>' : ' ', left_out,
                        Cells(flow, rates, snapshot.ledger_ms), Resource(flow)));
  }
  lines.insert(lines.end(), details.begin(),
               details.begin() + static_cast<std::ptrdiff_t>(for_details));
  if (lines.size() > rows) lines.resize(rows);
  for (std::string& line : lines) Cut(columns, &line);
  return lines;
}

}  // namespace nowcalls::command
