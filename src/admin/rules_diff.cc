#include "admin/rules_diff.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace nowcalls::admin {
namespace {

using nlohmann::ordered_json;
using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr Column<RuleChange> kChangeColumns[] = {
    {{"change", "CHANGE", Kind::kText}, [](const RuleChange& r) -> Cell { return r.change; }},
    {{"flow_id", "FLOW_ID", Kind::kNumber},
     [](const RuleChange& r) { return r.flow_id.has_value() ? Cell(*r.flow_id) : Cell(); }},
    {{"resource", "RESOURCE", Kind::kText}, [](const RuleChange& r) { return Text(r.resource); }},
    {{"field", "FIELD", Kind::kText},
     [](const RuleChange& r) { return r.field.has_value() ? Cell(*r.field) : Cell(); }},
    {{"old", "OLD", Kind::kWholeText},
     [](const RuleChange& r) { return r.before.has_value() ? Cell(*r.before) : Cell(); }},
    {{"new", "NEW", Kind::kWholeText},
     [](const RuleChange& r) { return r.after.has_value() ? Cell(*r.after) : Cell(); }},
    {{"note", "NOTE", Kind::kWholeText}, [](const RuleChange& r) { return Text(r.note); }},
};

std::string TextOf(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    // 10, not 10.0, as people write a count.
    const double number = value.get<double>();
    constexpr double kExactMax = 9e15;
    if (std::floor(number) == number && std::abs(number) < kExactMax) {
      return std::to_string(static_cast<int64_t>(number));
    }
  }
  return value.dump();
}

// "clusterConfig.resourceTimeout" -> "2000", in the order in which they are written.
Fields FieldsOf(const core::Rule& rule) {
  const auto object = ordered_json::parse(core::RuleToJson(rule));
  Fields fields;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_object()) {
      fields.emplace_back(name, TextOf(value));
      continue;
    }
    for (const auto& [inner, inner_value] : value.items()) {
      fields.emplace_back(name + "." + inner, TextOf(inner_value));
    }
  }
  return fields;
}

std::optional<std::string> Find(const Fields& fields, const std::string& name) {
  for (const auto& [known, value] : fields) {
    if (known == name) return value;
  }
  return std::nullopt;
}

RuleChange ChangeOf(std::string_view change, const core::Rule& rule) {
  RuleChange made;
  made.change = change;
  made.flow_id = rule.flow_id.value;
  made.resource = rule.resource;
  return made;
}

// A field that is only in one of the rules has no text on the other side.
void AddFields(const core::Rule& before, const core::Rule& after, RulesDiff* diff) {
  const Fields old_fields = FieldsOf(before);
  const Fields new_fields = FieldsOf(after);
  const auto add = [&](const std::string& name) {
    RuleChange change = ChangeOf("changed", after);
    change.field = name;
    change.before = Find(old_fields, name);
    change.after = Find(new_fields, name);
    if (change.before != change.after) diff->changes.push_back(std::move(change));
  };
  for (const auto& [name, value] : new_fields) add(name);
  for (const auto& [name, value] : old_fields) {
    if (!Find(new_fields, name).has_value()) add(name);
  }
}

void AddRemarks(std::string_view change, const core::RuleRemarks& remarks, RulesDiff* diff) {
  for (std::string& line : remarks.Lines()) {
    RuleChange added;
    added.change = change;
    added.note = std::move(line);
    diff->changes.push_back(std::move(added));
  }
}

}  // namespace

template <>
std::span<const Column<RuleChange>> ColumnsOf() {
  return kChangeColumns;
}

std::string RulesDiff::Summary() const {
  return std::to_string(added) + " added, " + std::to_string(removed) + " removed, " +
         std::to_string(changed) + " changed, " + std::to_string(unchanged) + " unchanged, " +
         std::to_string(skipped) + " skipped" +
         (conflicts == 0 ? "" : ", " + std::to_string(conflicts) + " in conflict");
}

RulesDiff DiffRules(std::string_view name_space, const std::vector<RuleRow>& in_force,
                    const core::ParsedRules& file) {
  struct Sides {
    const core::Rule* before = nullptr;
    const core::Rule* after = nullptr;
  };
  std::map<int64_t, Sides> flows;
  std::map<int64_t, std::string_view> owners;  // Flows of other namespaces.
  for (const RuleRow& row : in_force) {
    if (row.name_space == name_space) {
      flows[row.rule.flow_id.value].before = &row.rule;
    } else {
      owners.emplace(row.rule.flow_id.value, row.name_space);
    }
  }
  for (const core::Rule& rule : file.rules) flows[rule.flow_id.value].after = &rule;

  RulesDiff diff;
  std::vector<RuleChange> conflicts;
  for (const auto& [flow_id, sides] : flows) {
    if (sides.after == nullptr) {
      ++diff.removed;
      diff.changes.push_back(ChangeOf("removed", *sides.before));
    } else if (const auto owner = owners.find(flow_id); owner != owners.end()) {
      ++diff.conflicts;
      conflicts.push_back(ChangeOf("conflict", *sides.after));
      conflicts.back().note = "the flowId belongs to namespace " + std::string(owner->second);
    } else if (sides.before == nullptr) {
      ++diff.added;
      diff.changes.push_back(ChangeOf("added", *sides.after));
    } else if (*sides.before == *sides.after) {
      ++diff.unchanged;
    } else {
      ++diff.changed;
      AddFields(*sides.before, *sides.after, &diff);
    }
  }
  for (RuleChange& change : conflicts) diff.changes.push_back(std::move(change));
  diff.skipped = file.skipped.count();
  AddRemarks("skipped", file.skipped, &diff);
  AddRemarks("ignored", file.ignored, &diff);
  AddRemarks("warning", file.warned, &diff);
  return diff;
}

}  // namespace nowcalls::admin
