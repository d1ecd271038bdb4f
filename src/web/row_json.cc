#include "web/row_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "base/param_text.h"
#include "nowcalls/types.h"
#include "web/views.h"
#include "wire/flow_figures.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value.has_value() ? ordered_json(*value) : ordered_json(nullptr);
}

std::string Id(uint64_t id) { return std::to_string(id); }
std::string Id(int64_t id) { return std::to_string(id); }

// "issued_ms" and, with a clock, "issued_age_ms".
void AddPast(const char* name, int64_t at_ms, int64_t now_ms, ordered_json* json) {
  (*json)[std::string(name) + "_ms"] = at_ms;
  if (now_ms > 0) {
    (*json)[std::string(name) + "_age_ms"] = std::max<int64_t>(0, now_ms - at_ms);
  }
}

// "deadline_ms" and, with a clock, "deadline_in_ms": less than 0 once it has passed.
void AddDeadline(int64_t at_ms, int64_t now_ms, ordered_json* json) {
  (*json)["deadline_ms"] = at_ms;
  if (now_ms > 0) (*json)["deadline_in_ms"] = at_ms - now_ms;
}

void AddParam(const std::optional<ParamValue>& param, ordered_json* json) {
  if (param.has_value()) (*json)["param"] = ParamText(param->view());
}

struct ToJson {
  template <typename Plain>
  ordered_json operator()(const Plain& value) const {
    return value;
  }
  ordered_json operator()(std::monostate) const { return nullptr; }
  // By the words of the wire, without those that are 0.
  ordered_json operator()(const wire::WordedCounts& counts) const {
    ordered_json json = ordered_json::object();
    for (size_t i = 1; i < counts.counts.size(); ++i) {
      if (counts.counts[i] > 0) json[std::string(counts.word(i))] = counts.counts[i];
    }
    return json;
  }
  // Times have no value in JSON: their parts have.
  ordered_json operator()(const wire::Times* /*times*/) const { return nullptr; }
};

// `counters` or `rate` of a flow.
template <wire::FlowMap kMap>
ordered_json FiguresJson(const wire::FlowRow& row) {
  static const auto figures =
      wire::ByPlace([](const wire::FlowFigure& f) { return f.map == kMap ? f.json : uint8_t{0}; });
  ordered_json json = ordered_json::object();
  for (const wire::FlowFigure* figure : figures) {
    json[std::string(figure->name)] = std::visit(ToJson{}, figure->get(row));
  }
  return json;
}

}  // namespace

ordered_json FlowJson(const FlowLook& look, int64_t now_ms) {
  const wire::FlowRow& row = look.row;
  ordered_json json = {
      {"flow_id", Id(row.flow_id)},
      {"kind", row.kind},
      {"namespace", row.name_space},
      {"resource", row.resource},
      {"removed", row.removed},
      {"draining", row.draining},
      {"now_calls", row.now_calls},
      {"level", OrNull(row.level)},
      {"fullness", FullnessOf(row)},
      {"tokens", row.tokens},
      {"waiters", row.waiters.value_or(0)},
      {"sessions", OrNull(row.sessions)},
      {"granted_per_s", look.granted_per_s},
      {"refused_per_s", look.refused_per_s},
      {"ended_per_s", look.ended_per_s},
      {"exceptions_per_s", look.exceptions_per_s},
  };
  if (row.waiting_since_ms.has_value()) AddPast("waiting", *row.waiting_since_ms, now_ms, &json);
  if (row.oldest_issued_ms.has_value()) AddPast("oldest", *row.oldest_issued_ms, now_ms, &json);
  if (row.counters.has_value()) json["counters"] = FiguresJson<wire::FlowMap::kCounters>(row);
  if (row.rate.has_value()) json["rate"] = FiguresJson<wire::FlowMap::kRate>(row);
  if (row.other_kind.has_value()) json["other_kind"] = *row.other_kind;
  if (row.keys.has_value()) json["keys"] = *row.keys;
  return json;
}

// As a text, as other numbers of 63 bits, which JavaScript would round.
void AddInstance(const std::optional<uint64_t>& instance, ordered_json* json) {
  if (instance.has_value()) (*json)["instance"] = Id(*instance);
}

ordered_json TokenJson(const wire::TokenRow& row, int64_t now_ms) {
  ordered_json json = {
      {"token_id", Id(row.token_id)}, {"flow_id", Id(row.flow_id)},   {"namespace", row.name_space},
      {"client_id", row.client_id},   {"session", Id(row.session)},   {"count", row.count},
      {"fence", Id(row.fence)},       {"online", OrNull(row.online)},
  };
  AddPast("issued", row.issued_ms, now_ms, &json);
  AddDeadline(row.deadline_ms, now_ms, &json);
  AddParam(row.param, &json);
  AddInstance(row.instance, &json);
  return json;
}

ordered_json WaiterJson(const wire::WaiterRow& row, int64_t now_ms) {
  ordered_json json = {
      {"flow_id", Id(row.flow_id)}, {"place", row.place}, {"namespace", row.name_space},
      {"client_id", row.client_id}, {"count", row.count}, {"prioritized", row.prioritized},
  };
  AddPast("since", row.since_ms, now_ms, &json);
  AddDeadline(row.deadline_ms, now_ms, &json);
  AddParam(row.param, &json);
  AddInstance(row.instance, &json);
  return json;
}

ordered_json ParamJson(const wire::ParamRow& row) {
  ordered_json json = {
      {"param", ParamText(row.param.view())}, {"now_calls", row.now_calls},
      {"level", OrNull(row.level)},           {"tokens", row.tokens},
      {"waiters", OrNull(row.waiters)},
  };
  if (row.passed.has_value()) json["passed"] = *row.passed;
  if (row.blocked.has_value()) json["blocked"] = *row.blocked;
  if (row.minute_passed.has_value()) json["minute_passed"] = *row.minute_passed;
  if (row.minute_blocked.has_value()) json["minute_blocked"] = *row.minute_blocked;
  return json;
}

ordered_json SessionJson(const wire::SessionRow& row, int64_t now_ms) {
  ordered_json json = {
      {"session", Id(row.session)},     {"namespace", row.name_space},
      {"client_id", row.client_id},     {"kind", row.kind},
      {"online", OrNull(row.online)},   {"connections", row.connections},
      {"hosts", row.hosts.value_or(1)}, {"tokens", row.tokens},
      {"now_calls", row.now_calls},     {"waiters", row.waiters.value_or(0)},
  };
  if (row.instances.has_value()) {
    json["instances"] = *row.instances;
    AddInstance(row.instance.value_or(0), &json);
  }
  if (row.addresses.has_value()) json["addresses"] = *row.addresses;
  if (row.last_message_ms.has_value()) {
    AddPast("last_message", *row.last_message_ms, now_ms, &json);
  }
  AddPast("opened", row.opened_ms, now_ms, &json);
  if (row.offline_since_ms.has_value()) AddPast("offline", *row.offline_since_ms, now_ms, &json);
  return json;
}

ordered_json HistoryJson(const wire::HistoryRow& row, int64_t now_ms) {
  ordered_json json = {
      {"sequence", Id(row.sequence)}, {"reason", row.reason},       {"note", row.note},
      {"token_id", Id(row.token_id)}, {"flow_id", Id(row.flow_id)}, {"namespace", row.name_space},
      {"client_id", row.client_id},   {"session", Id(row.session)}, {"count", row.count},
      {"fence", Id(row.fence)},       {"issued_ms", row.issued_ms}, {"held_ms", row.held_ms},
  };
  if (row.outcome.has_value()) json["outcome"] = *row.outcome;
  AddPast("ended", row.ended_ms, now_ms, &json);
  AddParam(row.param, &json);
  AddInstance(row.instance, &json);
  return json;
}

ordered_json NamespaceJson(const wire::NamespaceRow& row) {
  return {
      {"namespace", row.name_space},
      {"source", OrNull(row.source)},
      {"rules", row.rules},
      {"sessions", row.sessions},
      {"sessions_online", OrNull(row.sessions_online)},
      {"loaded_ms", OrNull(row.loaded_ms)},
      {"refused_ms", OrNull(row.refused_ms)},
      {"refusal", OrNull(row.refusal)},
      {"warnings", OrNull(row.warnings)},
      {"requests_max", OrNull(row.requests_max)},
  };
}

}  // namespace nowcalls::web
