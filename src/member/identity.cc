#include "member/identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/hex.h"
#include "base/os_error.h"
#include "store/disk/file_copy.h"

namespace nowcalls::member {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = 4'096;
constexpr size_t kMemberDigits = 8;

std::string PathIn(const std::string& data_dir) { return data_dir + "/" + kIdentityFile; }

// Nothing of the cluster has gone into the log before `first`.
bool LogIsWhole(const cluster::LogView& view) {
  return view.lineage->base == 0 && (view.first == 1 || view.last == 0);
}

Status OfAnother(const std::string& ours, const std::string& prefix) {
  return Status::Corruption(
      "the ledger of this data directory is " + ours + ", and below " + prefix +
      " in etcd is another cluster: is the prefix right? To take part in that one, begin with an "
      "empty data directory");
}

}  // namespace

std::string DrawId() {
  std::string bytes;
  for (const uint64_t word : RandomBits128()) {
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return ToHex(bytes);
}

Result<Identity> JoinCluster(const std::string& data_dir, const std::string& cluster, bool joined) {
  Result<std::optional<Identity>> before = ReadIdentity(data_dir);
  if (!before.ok()) return before.status();
  Identity now{.cluster = cluster, .joined = joined};
  now.member = *before ? (*before)->member : DrawId().substr(0, kMemberDigits);
  if (*before != now) NOWCALLS_RETURN_IF_ERROR(WriteIdentity(data_dir, now));
  return now;
}

Result<std::optional<Identity>> ReadIdentity(const std::string& data_dir) {
  const std::string path = PathIn(data_dir);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return std::optional<Identity>();
  std::string text(kFileBytesMax, '\0');
  const ssize_t size = fd < 0 ? -1 : read(fd, text.data(), text.size());
  if (size < 0) {
    Status failed = OsError("read", path);
    if (fd >= 0) close(fd);
    return failed;
  }
  close(fd);
  text.resize(static_cast<size_t>(size));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* name, Json::value_t type) {
    return json.is_object() && json.contains(name) && json[name].type() == type;
  };
  if (!has("member", Json::value_t::string) || !has("cluster", Json::value_t::string) ||
      !has("joined", Json::value_t::boolean)) {
    return Status::Corruption(path + " does not say which cluster this data directory is of");
  }
  return std::optional(Identity{.member = json["member"].get<std::string>(),
                                .cluster = json["cluster"].get<std::string>(),
                                .joined = json["joined"].get<bool>()});
}

Status WriteIdentity(const std::string& data_dir, const Identity& identity) {
  const Json json = {
      {"member", identity.member}, {"cluster", identity.cluster}, {"joined", identity.joined}};
  return store::ReplaceFile(PathIn(data_dir), json.dump(2) + "\n");
}

Result<Part> DecidePart(const std::optional<Identity>& identity, uint64_t applied,
                        const cluster::LogView& view, const std::string& prefix) {
  if (!view.lineage) {
    if (!identity || !identity->joined) return Part::kBegin;
    return Status::Corruption(
        "the ledger of this data directory is of cluster " + identity->cluster +
        ", and etcd has none below " + prefix +
        ": is the prefix right? If etcd has lost all, remove " + kIdentityFile +
        " from the data directory with the latest ledger, which then begins a cluster anew");
  }
  if (applied == 0) return LogIsWhole(view) ? Part::kEnter : Part::kCopy;
  if (!identity) return OfAnother("a single server's", prefix);
  if (identity->cluster != view.lineage->id) {
    return OfAnother("of cluster " + identity->cluster, prefix);
  }
  if (view.end() < applied) {
    return Status::Corruption(
        "the log in etcd ends with batch " + std::to_string(view.end()) +
        ", and this ledger has batch " + std::to_string(applied) +
        ": etcd has lost what was answered, perhaps by a restore. To go on with what this ledger "
        "has, remove the keys below " +
        prefix + " from etcd, and " + kIdentityFile +
        " from this data directory; the other members then begin with empty ones");
  }
  const bool behind = view.first > 0 ? view.first > applied + 1 : view.end() > applied;
  return behind ? Part::kCopy : Part::kGoOn;
}

}  // namespace nowcalls::member
