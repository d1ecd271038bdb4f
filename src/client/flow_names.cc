// The names that a process has used. Their ids are negative: rules have none of these.
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/limits.h"
#include "nowcalls/flow_name.h"

namespace nowcalls {
namespace {

class Registry {
 public:
  FlowId Add(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (const auto known = places_.find(name); known != places_.end()) return IdAt(known->second);
    if (names_.size() >= kFlowNamesMax) return {};
    // A deque moves none of its strings, so views of them stay good.
    names_.emplace_back(name);
    places_.emplace(names_.back(), names_.size() - 1);
    return IdAt(names_.size() - 1);
  }
  std::string_view Find(FlowId id) {
    const auto place = static_cast<uint64_t>(id.value) - static_cast<uint64_t>(INT64_MIN);
    const std::lock_guard lock(mutex_);
    return place < names_.size() ? std::string_view{names_[place]} : std::string_view{};
  }

 private:
  static FlowId IdAt(size_t place) { return FlowId{INT64_MIN + static_cast<int64_t>(place)}; }

  std::mutex mutex_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, size_t> places_;
};

// Never destroyed: threads may ask while the process ends.
Registry& Names() {
  static auto* const names = new Registry;
  return *names;
}

}  // namespace

FlowId FlowNamed(std::string_view resource) {
  if (resource.empty() || resource.size() > kResourceBytesMax) return {};
  return Names().Add(resource);
}

std::string_view NameOfFlow(FlowId flow) {
  return flow.value < 0 ? Names().Find(flow) : std::string_view();
}

}  // namespace nowcalls
