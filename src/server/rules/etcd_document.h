// EtcdDocument: the value of a key of etcd, and the wait for its change.
//
// Happy path: Fetch waits at a watch of the key, then looks at the key. A look brings the value
// only if version or create revision are others than before. Failure modes: a watch may miss a
// change, so the wait is bounded by kWaitMs. An etcd that does not answer is left for the next
// endpoint.
#ifndef NOWCALLS_SERVER_RULES_ETCD_DOCUMENT_H_
#define NOWCALLS_SERVER_RULES_ETCD_DOCUMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cluster/etcd.h"
#include "server/rules/remote_document.h"

namespace nowcalls::server {

class EtcdDocument final : public RemoteDocument {
 public:
  static constexpr int64_t kWaitMs = 10'000;
  static constexpr int64_t kAnswerMsMax = 1'000;  // Of one endpoint.
  static constexpr int64_t kSettleMs = 200;       // From a look to the next wait.
  static constexpr int64_t kFailurePauseMs = 1'000;

  static constexpr size_t kMoreAttempts = 3;

  // `endpoints`: of the client; a look asks each, and some again.
  EtcdDocument(std::unique_ptr<cluster::Etcd> etcd, size_t endpoints, std::string key);

  Fetched Fetch(bool again) override;
  void Interrupt() override;

 private:
  Result<cluster::TxnReply> Ask(const cluster::Txn& txn);
  Fetched Fail(const Status& why);

  const std::unique_ptr<cluster::Etcd> etcd_;
  const size_t endpoints_;
  const std::string key_;
  std::atomic<bool> interrupted_ = false;
  // Of the value that was read last; 0: none.
  int64_t version_ = 0;
  int64_t create_revision_ = 0;
  int64_t revision_ = 0;  // Of the store, at the last look.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_ETCD_DOCUMENT_H_
