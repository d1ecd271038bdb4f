// Keys: the names of a cluster's keys in etcd.
//
// Thread: any. README.md has the layout.
#ifndef NOWCALLS_CLUSTER_KEYS_H_
#define NOWCALLS_CLUSTER_KEYS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::cluster {

class Keys {
 public:
  static constexpr size_t kPrefixBytesMax = 512;

  // `prefix` as users write it, with or without '/' at its ends. kInvalidArgument: it is empty, too
  // long, or has characters that are not visible ASCII.
  static Result<Keys> Under(std::string_view prefix);

  std::string lineage() const { return prefix_ + "cluster"; }
  std::string writer() const { return prefix_ + "writer"; }
  std::string leader() const { return prefix_ + "leader"; }  // The last that began to serve.
  // Sorted as the numbers are.
  std::string Slot(uint64_t number) const;
  std::string slots_end() const { return prefix_ + "log0"; }  // '0' follows '/'.
  // nullopt: `key` is no slot.
  std::optional<uint64_t> SlotNumber(std::string_view key) const;
  // Part `index` of a batch that is too long for one value, below 65,536.
  std::string Part(uint64_t number, size_t index) const;
  std::string Member(std::string_view id) const { return prefix_ + "members/" + std::string(id); }
  std::string members_end() const { return prefix_ + "members0"; }

  const std::string& prefix() const { return prefix_; }  // Ends with '/'.

 private:
  explicit Keys(std::string prefix) : prefix_(std::move(prefix)) {}

  std::string prefix_;
};

}  // namespace nowcalls::cluster

#endif  // NOWCALLS_CLUSTER_KEYS_H_
