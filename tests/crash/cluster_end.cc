#include "crash/cluster_end.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <thread>
#include <utility>

namespace nowcalls::crash {
namespace {

using enum ClusterEnd;

constexpr ClusterEnd kEnds[] = {kKill,           kHandOver, kStop,    kEtcdLeader,
                                kBoth,           kEtcdAway, kNoSpace, kCutFromEtcd,
                                kCutFromClients, kNodeAway, kSplit};

bool NeedsHosts(ClusterEnd end) {
  return end == kCutFromEtcd || end == kCutFromClients || end == kNodeAway || end == kSplit;
}

void SleepBetween(int64_t from_ms, int64_t to_ms, Prng* prng) {
  std::this_thread::sleep_for(std::chrono::milliseconds(prng->Between(from_ms, to_ms)));
}

std::optional<size_t> KillLeader(ClusterSite* site) {
  const auto leader = site->etcd().Leader();
  if (leader) site->etcd().Kill(*leader);
  return leader;
}

void SignalEtcd(ClusterSite* site, int signal) {
  for (size_t i = 0; i < ClusterSite::kNodes; ++i) site->etcd().Signal(i, signal);
}

// In the middle of it the writer is killed, every other time.
void LetLast(int64_t from_ms, int64_t to_ms, size_t writer, ClusterSite* site, Prng* prng) {
  SleepBetween(from_ms / 2, to_ms / 2, prng);
  if (prng->Below(2) == 0) site->member(writer).Kill9();
  SleepBetween(from_ms / 2, to_ms / 2, prng);
}

void DoPart(ClusterEnd end, size_t writer, ClusterSite* site, Prng* prng) {
  const size_t leader = site->etcd().Leader().value_or(0);
  switch (end) {
    case kCutFromEtcd:
      site->PartFromEtcd(writer);
      SleepBetween(500, 6'000, prng);
      break;
    case kCutFromClients:
      site->PartFromClients(writer);
      SleepBetween(500, 6'000, prng);
      break;
    case kNodeAway:
      site->PartNode(prng->Below(2) == 0 ? leader : prng->Below(ClusterSite::kNodes));
      LetLast(1'000, 6'000, writer, site, prng);
      break;
    case kSplit:
      site->SplitNode(leader);
      LetLast(1'000, 6'000, writer, site, prng);
      break;
    default: break;
  }
  site->Heal();
}

}  // namespace

std::string NameOf(ClusterEnd end) {
  switch (end) {
    case kKill: return "kill of the writer";
    case kHandOver: return "handover";
    case kStop: return "stop of the writer";
    case kEtcdLeader: return "kill of etcd's leader, then of the writer";
    case kBoth: return "kill of etcd's leader and the writer";
    case kEtcdAway: return "etcd that stands still";
    case kCutFromEtcd: return "a writer cut off from etcd";
    case kCutFromClients: return "a writer cut off from its clients";
    case kNodeAway: return "a node of etcd that is away";
    case kSplit: return "etcd's leader cut off from its followers";
    case kNoSpace: return "etcd without space";
  }
  return {};
}

std::vector<ClusterEnd> ShuffledEnds(const ClusterSite& site, const std::string& only, Prng* prng) {
  std::vector<ClusterEnd> ends;
  for (const ClusterEnd end : kEnds) {
    if (NeedsHosts(end) && !site.can_part()) continue;
    if (only.empty() || only == NameOf(end)) ends.push_back(end);
  }
  for (size_t left = ends.size(); left > 1; --left) {
    std::swap(ends[left - 1], ends[prng->Below(left)]);
  }
  return ends;
}

EndDone DoEnd(ClusterEnd end, size_t writer, ClusterSite* site, Prng* prng) {
  testing::ServerProcess& member = site->member(writer);
  EndDone done;
  switch (end) {
    case kKill: member.Kill9(); break;
    case kHandOver:
      if (member.Terminate() != 0) done.wrong = "a handover ends with another code than 0";
      break;
    case kStop:
      member.process().Signal(SIGSTOP);
      SleepBetween(1'000, 15'000, prng);
      member.process().Signal(SIGCONT);
      break;
    case kEtcdLeader:
      done.node_down = KillLeader(site);
      SleepBetween(0, 3'000, prng);
      member.Kill9();
      break;
    case kBoth:
      done.node_down = KillLeader(site);
      member.Kill9();
      break;
    case kEtcdAway:
      SignalEtcd(site, SIGSTOP);
      SleepBetween(2'000, 4'000, prng);
      SignalEtcd(site, SIGCONT);
      break;
    case kNoSpace:
      site->etcd().SetNoSpace(true);
      LetLast(1'000, 5'000, writer, site, prng);
      site->etcd().SetNoSpace(false);
      break;
    default: DoPart(end, writer, site, prng); break;
  }
  return done;
}

}  // namespace nowcalls::crash
