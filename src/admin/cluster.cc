#include "admin/cluster.h"

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "admin/actions.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "net/endpoint.h"

namespace nowcalls::admin {
namespace {

using client::BlockingClient;

constexpr int kPauseMs = 20;
// Of one address, so that a machine that is gone does not hide the others.
constexpr int64_t kAskMsMax = 1'000;

constexpr Column<ListedMember> kMemberColumns[] = {
    {{"address", "MEMBER", Kind::kWholeText},
     [](const ListedMember& r) { return Text(r.member.address); }},
    {{"role", "ROLE", Kind::kText},
     [](const ListedMember& r) { return Text(r.member.leads ? "writer" : "standby"); }},
    {{"lag_batches", "LAG", Kind::kNumber},
     [](const ListedMember& r) -> Cell { return r.member.lag; }},
    {{"applied", "BATCH", Kind::kNumber, 1},
     [](const ListedMember& r) -> Cell { return r.member.applied; }},
    {{"synced", "ON_DISK", Kind::kNumber, 2},
     [](const ListedMember& r) -> Cell { return r.member.synced; }},
    {{"silent_ms", "SILENT", Kind::kDuration},
     [](const ListedMember& r) -> Cell { return static_cast<int64_t>(r.member.silent_ms); }},
    {{"version", "VERSION", Kind::kText, 3},
     [](const ListedMember& r) { return Text(r.member.version); }},
    {{"member", "ID", Kind::kText, 4}, [](const ListedMember& r) { return Text(r.member.member); }},
    // Of the cluster; a table has them above it.
    {{"term", "", Kind::kNumber}, [](const ListedMember& r) -> Cell { return r.cluster.term; }},
    {{"last_batch", "", Kind::kNumber},
     [](const ListedMember& r) -> Cell { return r.cluster.last_batch; }},
    {{"log_bytes", "", Kind::kNumber},
     [](const ListedMember& r) -> Cell { return r.cluster.log_bytes; }},
    {{"log_bytes_max", "", Kind::kNumber},
     [](const ListedMember& r) -> Cell { return r.cluster.log_bytes_max; }},
    {{"prefix", "", Kind::kText}, [](const ListedMember& r) { return Text(r.cluster.prefix); }},
    {{"cluster", "", Kind::kText}, [](const ListedMember& r) { return Text(r.cluster.cluster); }},
};

std::string Head(const wire::ClusterReply& cluster) {
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  const std::string writer = cluster.writer.empty() ? "nobody" : cluster.writer;
  return "cluster " + cluster.prefix + ": " + writer + " writes in term " +
         std::to_string(cluster.term) + ", last batch " + std::to_string(cluster.last_batch) +
         ", log " + std::to_string(cluster.log_bytes / kMebibyte) + " of " +
         std::to_string(cluster.log_bytes_max / kMebibyte) + " MiB";
}

// Those of --server, then those that the members tell: not each of them need be reachable here.
std::vector<std::string> WhereToAsk(const Arguments& arguments, const wire::ClusterReply& cluster) {
  std::vector<std::string> addresses;
  const auto add = [&](const std::string& address) {
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  };
  if (const auto servers = net::ParseServers(arguments.server); servers.ok()) {
    for (const net::Endpoint& server : *servers) add(server.ToString());
  }
  for (const wire::ClusterMember& member : cluster.members) add(member.address);
  return addresses;
}

// None: there is no writer of a later term.
std::optional<wire::ClusterReply> FindWriter(const Arguments& arguments, uint64_t term,
                                             const std::vector<std::string>& addresses,
                                             int64_t until_ms) {
  for (const std::string& address : addresses) {
    if (BoottimeMs() > until_ms) break;
    const auto client =
        BlockingClient::Connect({.address = address,
                                 .timeout_ms = std::min(arguments.timeout_ms, kAskMsMax),
                                 .security = arguments.security});
    if (!client.ok()) continue;
    Result<wire::ClusterReply> cluster = (*client)->Cluster();
    if (cluster.ok() && cluster->term > term) return *std::move(cluster);
  }
  return std::nullopt;
}

}  // namespace

template <>
std::span<const Column<ListedMember>> ColumnsOf() {
  return kMemberColumns;
}

Status PrintCluster(Format format, const wire::ClusterReply& cluster, Output* out) {
  if (format == Format::kTable) out->Write(TerminalText(Head(cluster)) + "\n");
  return PrintRows<ListedMember>(format, /*now_ms=*/0, out, [&](const auto& sink) {
    for (const wire::ClusterMember& member : cluster.members) {
      NOWCALLS_RETURN_IF_ERROR(sink({cluster, member}));
    }
    return Status::Ok();
  });
}

Result<std::string> HandOver(const Arguments& arguments, BlockingClient* client) {
  const Result<wire::ClusterReply> before = client->Cluster();
  if (!before.ok()) return before.status();
  const std::vector<std::string> addresses = WhereToAsk(arguments, *before);
  const int64_t began_ms = BoottimeMs();
  const Result<uint64_t> term = client->Handover();
  if (!term.ok()) return MaybeDone(arguments, term.status());
  for (;;) {
    const auto after = FindWriter(arguments, *term, addresses, began_ms + arguments.timeout_ms);
    const int64_t took_ms = BoottimeMs() - began_ms;
    if (after && after->writer == before->writer) {
      return Status::NotFound("no other member took over: " + Shortened(after->writer) +
                              " serves again in term " + std::to_string(after->term) + ", after " +
                              HumanDuration(took_ms));
    }
    if (after) {
      return TerminalText(Shortened(after->writer) + " serves in term " +
                          std::to_string(after->term) + ", after " + HumanDuration(took_ms) + "; " +
                          Shortened(before->writer) + " stands by") +
             "\n";
    }
    if (took_ms > arguments.timeout_ms) {
      return Status::Unavailable(Shortened(before->writer) + " has handed over in term " +
                                 std::to_string(*term) + ", and no member has answered for " +
                                 HumanDuration(took_ms) + ": look with `nowcalls-admin cluster`");
    }
    poll(nullptr, 0, kPauseMs);
  }
}

}  // namespace nowcalls::admin
