#include "crash/cluster_site.h"

#include <filesystem>

#include "cluster/claimed_log.h"
#include "etcd/client.h"
#include "member/identity.h"
#include "support/poll_until.h"
#include "support/rpc_client.h"
#include "support/tcp.h"

namespace nowcalls::crash {
namespace {

constexpr char kPrefix[] = "/crash";

}  // namespace

ClusterSite::ClusterSite(const std::string& dir, const testing::ServerOptions& member)
    : network_(testing::Network::Make(1 + kNodes + kMembers)),
      etcd_(kNodes, network_.get(), HostOfNode(0)) {
  for (size_t i = 0; i < kMembers; ++i) {
    const std::string home = dir + "/member-" + std::to_string(i);
    std::filesystem::create_directories(home);
    testing::ServerOptions options = member;
    options.port = testing::FreePort();
    options.arguments.insert(options.arguments.end(),
                             {"--cluster", "etcd://" + etcd_.endpoints() + kPrefix});
    if (network_) {
      options.host = testing::Network::Address(HostOfMember(i));
      options.launcher = network_->Launcher(HostOfMember(i));
      options.arguments.emplace_back("--insecure-listen");
    }
    members_.push_back(std::make_unique<testing::ServerProcess>(home, options));
  }
}

std::string ClusterSite::AddressOf(size_t member) const {
  const testing::ServerOptions& options = members_[member]->options();
  return options.host + ":" + std::to_string(options.port);
}

bool ClusterSite::Serves(size_t member) {
  return members_[member]->Running() && testing::RpcClient(AddressOf(member)).Call("ping").ok();
}

std::optional<size_t> ClusterSite::AwaitWriter() {
  std::optional<size_t> writer;
  testing::PollUntil(2 * testing::kPatienceMs, [&] {
    for (size_t i = 0; i < kMembers && !writer; ++i) {
      if (Serves(i)) writer = i;
    }
    return writer.has_value();
  });
  return writer;
}

bool ClusterSite::LacksLedger(size_t member) {
  const std::string log = members_[member]->log();
  if (!members_[member]->Running()) return false;
  for (const char* const sign : {" takes a copy of the ledger from", " lacks what the log has"}) {
    const size_t at = log.rfind(sign);
    if (at != std::string::npos && log.find(" stands by: ", at) == std::string::npos) return true;
  }
  return false;
}

bool ClusterSite::AwaitFollowing(size_t member, size_t writer) {
  return members_[member]->LogHas("stands by: " + AddressOf(writer) + " writes in term");
}

size_t ClusterSite::TimesLogged(const std::string& text) const {
  size_t times = 0;
  for (const auto& member : members_) {
    const std::string log = member->log();
    for (size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at) ++times;
  }
  return times;
}

ClusterSite::Log ClusterSite::LookAtLog() const {
  etcd::Client client({.endpoints = etcd_.addresses()});
  const cluster::ClaimedLog log(*cluster::Keys::Under(kPrefix));
  const auto reply = client.Commit(log.Look());
  const auto view = reply.ok() ? log.ViewOf(*reply) : reply.status();
  return view.ok() ? Log{.first = view->first, .last = view->last} : Log{};
}

std::vector<std::string> ClusterSite::Lineages() const {
  std::vector<std::string> lineages;
  for (const auto& member : members_) {
    const auto identity = member::ReadIdentity(member->data_dir());
    const bool joined = identity.ok() && identity->has_value() && (*identity)->joined;
    lineages.push_back(joined ? (*identity)->cluster : "none");
  }
  return lineages;
}

void ClusterSite::PartFromEtcd(size_t member) {
  if (!network_) return;
  for (size_t i = 0; i < kNodes; ++i) network_->Part(HostOfMember(member), HostOfNode(i));
}

void ClusterSite::PartFromClients(size_t member) {
  if (network_) network_->Part(0, HostOfMember(member));
}

void ClusterSite::SplitNode(size_t node) {
  if (!network_) return;
  for (size_t i = 0; i < kNodes; ++i) {
    if (i != node) network_->Part(HostOfNode(node), HostOfNode(i));
  }
}

void ClusterSite::PartNode(size_t node) {
  SplitNode(node);
  if (!network_) return;
  for (size_t i = 0; i < kMembers; ++i) network_->Part(HostOfNode(node), HostOfMember(i));
}

void ClusterSite::Heal() {
  if (network_) network_->Heal();
}

}  // namespace nowcalls::crash
