#include "admin/rules_diff.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/param_text.h"
#include "base/text.h"

namespace nowcalls::admin {
namespace {

using nlohmann::ordered_json;

// Names and values of fields, in the order in which they are written.
struct Fields {
  std::vector<std::string> names;
  std::map<std::string, std::string> values;

  void Add(std::string name, std::string value) {
    values.emplace(name, std::move(value));
    names.push_back(std::move(name));
  }
  std::optional<std::string> Find(const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
};

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
    {{"kind", "KIND", Kind::kText, 0, /*rare=*/true},
     [](const RuleChange& r) { return r.kind ? Cell(FlowKindName(*r.kind)) : Cell(); }},
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

// "specificItems int 5" -> "10", for each value with a limit of its own.
void AddItems(const std::string& list, const core::Rule& rule, Fields* fields) {
  for (const core::ParamRule::Item& item : rule.param->items) {
    const Param value = item.value.view();
    fields->Add(list + " " + std::string(ParamTypeName(value.type)) + " " + ParamText(value),
                NumberText(item.count));
  }
}

// "clusterConfig.resourceTimeout" -> "2000".
Fields FieldsOf(const core::Rule& rule) {
  const auto object = ordered_json::parse(core::RuleToJson(rule));
  Fields fields;
  for (const auto& [name, value] : object.items()) {
    // Sentinel's lists of values with limits of their own: a field for each value.
    if (value.is_array()) {
      AddItems(name, rule, &fields);
    } else if (!value.is_object()) {
      fields.Add(name, TextOf(value));
    } else {
      for (const auto& [inner, inner_value] : value.items()) {
        fields.Add(name + "." + inner, TextOf(inner_value));
      }
    }
  }
  return fields;
}

RuleChange ChangeOf(std::string_view change, const core::Rule& rule) {
  RuleChange made;
  made.change = change;
  made.flow_id = rule.flow_id.value;
  made.kind = rule.key().kind;
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
    change.before = old_fields.Find(name);
    change.after = new_fields.Find(name);
    if (change.before != change.after) diff->changes.push_back(std::move(change));
  };
  // In the order of the new rule, then fields that only the old one has.
  for (const std::string& name : new_fields.names) add(name);
  for (const std::string& name : old_fields.names) {
    if (!new_fields.Find(name).has_value()) add(name);
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
  // Both sides by flow id and kind, which belong to one namespace: rules of others are possible
  // conflicts.
  std::map<FlowKey, Sides> flows;
  std::map<FlowKey, std::string_view> owners;  // Flows of other namespaces.
  for (const RuleRow& row : in_force) {
    if (row.name_space == name_space) {
      flows[row.rule.key()].before = &row.rule;
    } else {
      owners.emplace(row.rule.key(), row.name_space);
    }
  }
  for (const core::Rule& rule : file.rules) flows[rule.key()].after = &rule;

  RulesDiff diff;
  std::vector<RuleChange> conflicts;
  for (const auto& [key, sides] : flows) {
    // Only before: removed. Owned by another namespace: the load would be refused. Only after:
    // added.
    if (sides.after == nullptr) {
      ++diff.removed;
      diff.changes.push_back(ChangeOf("removed", *sides.before));
    } else if (const auto owner = owners.find(key); owner != owners.end()) {
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
  // Behind the changes, since a load with a conflict changes nothing.
  for (RuleChange& change : conflicts) diff.changes.push_back(std::move(change));
  diff.skipped = file.skipped.count();
  AddRemarks("skipped", file.skipped, &diff);
  AddRemarks("ignored", file.ignored, &diff);
  AddRemarks("warning", file.warned, &diff);
  return diff;
}

}  // namespace nowcalls::admin
