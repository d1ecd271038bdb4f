#include "sim/admin_life.h"

#include <algorithm>
#include <optional>
#include <string>

namespace nowcalls::sim {

AdminLife::AdminLife(World* world, uint64_t seed)
    : world_(world), prng_(seed), initial_rules_(world->options().rules) {
  for (const SimRule& rule : initial_rules_) {
    const auto found = std::find(name_spaces_.begin(), name_spaces_.end(), rule.name_space);
    if (found == name_spaces_.end()) name_spaces_.push_back(rule.name_space);
  }
  pace_us_ = prng_.Between(100, 3'000) * kMs;
}

void AdminLife::ActLater() {
  const bool soon = restoring_ || loaded_ < name_spaces_.size();
  world_->timeline().After(soon ? 20 * kMs : prng_.Between(1, 2 * pace_us_), [this] { Act(); });
}

void AdminLife::Act() {
  ActLater();
  if (!world_->admin().Ready()) return;
  if (restoring_) return ContinueRestoring();
  if (loaded_ < name_spaces_.size()) {
    return world_->admin().LoadRules(world_->rules(), name_spaces_[loaded_++]);
  }
  Change();
}

void AdminLife::Change() {
  SimAdmin& admin = world_->admin();
  std::vector<SimRule>& rules = world_->rules();
  const size_t place = prng_.Below(rules.size());
  SimRule& rule = rules[place];
  const auto limit = static_cast<uint32_t>(prng_.Below(2) == 0 ? 1 : kReclaimTokensMax);
  const uint64_t what = prng_.Below(100);
  if (what < 30) {
    const auto by = static_cast<double>(prng_.Between(-4, 2));
    rule.count = std::max(0.0, initial_rules_[place].count + by);
    admin.LoadRules(rules, rule.name_space);
  } else if (what < 45 || !rule.present) {
    rule.present = !rule.present;
    admin.LoadRules(rules, rule.name_space);
  } else if (what < 60) {
    const bool of_one_namespace =
        std::all_of(rules.begin(), rules.end(), [&rule](const SimRule& other) {
          return other.flow != rule.flow || other.name_space == rule.name_space;
        });
    admin.Drain(rule.flow, of_one_namespace ? std::nullopt : std::optional(rule.kind()),
                prng_.Below(4) == 0);
  } else if (what < 75) {
    const bool all = what % 2 == 0;
    admin.ReclaimFlow(rule.flow, all ? std::nullopt : std::optional(rule.kind()), limit);
  } else if (what < 80) {
    admin.Purge(rule.flow, rule.kind());
  } else {
    const std::vector<uint64_t> held = world_->HeldTokens();
    if (what < 90 && !held.empty()) return admin.Reclaim(held[prng_.Below(held.size())]);
    const std::vector<std::string> owners = world_->Owners();
    const std::string& owner = owners[prng_.Below(owners.size())];
    const size_t slash = owner.find('/');
    const size_t end = std::min(owner.find('#'), owner.size());
    std::optional<uint64_t> instance;
    if (end < owner.size() && held.size() % 2 == 0) instance = std::stoull(owner.substr(end + 1));
    admin.ReclaimClient(owner.substr(0, slash), owner.substr(slash + 1, end - slash - 1), instance,
                        limit);
  }
}

void AdminLife::Restore() {
  restoring_ = true;
  world_->rules() = initial_rules_;
  for (const std::string& name_space : name_spaces_) {
    to_restore_.emplace_back(
        [this, name_space] { world_->admin().LoadRules(world_->rules(), name_space); });
  }
  for (const SimRule& rule : initial_rules_) {
    to_restore_.emplace_back(
        [this, flow = rule.flow, kind = rule.kind()] { world_->admin().Drain(flow, kind, false); });
  }
}

void AdminLife::ContinueRestoring() {
  if (asked_ && world_->admin().last_was_answered()) to_restore_.erase(to_restore_.begin());
  asked_ = !to_restore_.empty();
  if (asked_) to_restore_.front()();
}

}  // namespace nowcalls::sim
