#include "crash/demo_stage.h"

#include <stdexcept>

#include "base/clock.h"

namespace nowcalls::crash {
namespace {

constexpr size_t kMembers = 3;

}  // namespace

std::string SingleStage::Begin(const std::vector<std::string>& arguments) {
  server_.options().arguments = arguments;
  server_.Start();
  return "A server on " + server_.address() + " (process " +
         std::to_string(server_.process().pid()) + "), ledger in " + server_.data_dir();
}

std::string SingleStage::Recover() {
  const int64_t started_ms = BoottimeMs();
  server_.Start();
  return "The server again, on the same ledger: it served after " +
         std::to_string(BoottimeMs() - started_ms) + " ms.";
}

std::string ClusterStage::Begin(const std::vector<std::string>& arguments) {
  members_.emplace(kMembers, etcd_.endpoints(), arguments);
  members_->StartAll();
  std::string servers;
  for (size_t i = 0; i < kMembers; ++i) {
    servers += (i == 0 ? "" : ", ") + members_->address(i) + " (process " +
               std::to_string(members_->member(i).process().pid()) + ")";
  }
  return "Three servers on three etcds: " + servers + ". The first serves";
}

void ClusterStage::Kill() {
  members_->member(writer_).Kill9();
  killed_ms_ = BoottimeMs();
}

testing::Source ClusterStage::Left() {
  killed_ = writer_;
  writer_ = members_->AwaitWriter(killed_);
  takeover_ms_ = BoottimeMs() - killed_ms_;
  return testing::Source::Live(address());
}

std::string ClusterStage::Recover() {
  testing::ServerProcess& member = members_->member(killed_);
  member.StartWithoutWaiting();
  const std::string stands_by = " stands by: " + address() + " writes";
  if (!member.LogHas(members_->address(killed_) + stands_by)) {
    throw std::runtime_error("the killed member does not stand by:\n" + member.log());
  }
  return address() + " served " + std::to_string(takeover_ms_) + " ms after the kill; " +
         members_->address(killed_) + " was started again, and stands by.";
}

bool ClusterStage::End() {
  bool all = true;
  for (size_t i = 0; i < kMembers; ++i) {
    if (i != writer_) all = members_->member(i).Terminate() == 0 && all;
  }
  return members_->member(writer_).Terminate() == 0 && all;
}

std::vector<std::string> ClusterStage::data_dirs() {
  std::vector<std::string> dirs;
  for (size_t i = 0; i < kMembers; ++i) dirs.push_back(members_->member(i).data_dir());
  return dirs;
}

}  // namespace nowcalls::crash
