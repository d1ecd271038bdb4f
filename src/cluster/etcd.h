// Etcd: what a cluster asks of etcd, as data.
//
// Thread: that of the implementation. Keys are whole; values are bytes. A range is [key, end).
#ifndef NOWCALLS_CLUSTER_ETCD_H_
#define NOWCALLS_CLUSTER_ETCD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::cluster {

// True of a key that does not exist: version and create revision 0, no value.
struct Compare {
  enum class What { kVersion, kCreateRevision, kValue };

  std::string key;
  What what = What::kVersion;
  int64_t number = 0;   // Of kVersion and kCreateRevision.
  std::string value{};  // Of kValue.
};

struct Operation {
  enum class Kind { kGet, kPut, kDelete };

  Kind kind = Kind::kGet;
  std::string key;
  std::string end{};  // Of a range; empty: the key alone. Not of kPut.
  std::string value{};
  int64_t lease = 0;  // Of kPut; 0: none.
  // Of kGet.
  int64_t rows_max = 0;  // 0: all.
  bool descending = false;
  bool keys_only = false;
};

// All of `then` if every compare is true, all of `otherwise` if not, in one step. It sees all that
// was answered before it was sent. etcd takes 128 operations a branch and 1.5 MiB.
struct Txn {
  std::vector<Compare> compares{};
  std::vector<Operation> then{};
  std::vector<Operation> otherwise{};
};

struct Row {
  std::string key;
  std::string value;  // Empty with keys_only.
  int64_t create_revision = 0;
  int64_t version = 0;
  int64_t lease = 0;
};

struct TxnReply {
  bool succeeded = false;
  int64_t revision = 0;                   // Of the whole store. A put of this Txn has it.
  std::vector<std::vector<Row>> found{};  // For each kGet of the branch, in order.
};

// Where etcd is, and as whom it is asked.
struct EtcdOptions {
  std::vector<HostPort> endpoints;  // At least one.
  int64_t answer_ms_max = 1'000;

  // Of TLS: PEM. With `tls` and without `ca`: the machine's own authorities.
  bool tls = false;
  std::string ca{};
  std::string certificate{};  // Of the client, with `key`; empty: none.
  std::string key{};

  std::string user{};  // Empty: none.
  std::string password{};
};

struct LeaseTime {
  int64_t id = 0;
  int64_t ttl_ms = 0;
};

// Blocks until an answer or a time limit of the implementation. kUnavailable: surely not carried
// out. kOutcomeUnknown: perhaps, or it will be. kResourceExhausted: etcd has no space left.
// kPermissionDenied. kInvalidArgument: etcd does not take it.
class Etcd {
 public:
  virtual ~Etcd() = default;

  virtual Result<TxnReply> Commit(const Txn& txn) = 0;

  // etcd may give more time than is asked for.
  virtual Result<LeaseTime> Grant(int64_t ttl_ms) = 0;
  // kNotFound: the lease is over, and its keys are gone.
  virtual Result<LeaseTime> Renew(int64_t lease) = 0;
  // The lease and its keys go. One that is gone already is no error.
  virtual Status Revoke(int64_t lease) = 0;

  // Forgets what was before `revision`. One that is forgotten already is no error.
  // kInvalidArgument: it is yet to come.
  virtual Status Compact(int64_t revision) = 0;

  // Returns after `wait_ms`, or earlier when `key` changes behind `revision`, or when the
  // connection breaks. A change may go unseen: look at the key afterwards.
  virtual void AwaitChange(const std::string& key, int64_t revision, int64_t wait_ms) = 0;

  // Thread: any. Ends the AwaitChange under way, of which there is one at most, or else the next.
  virtual void EndWait() = 0;
};

// Shorthands.
inline Operation Get(std::string key) { return {.key = std::move(key)}; }
inline Operation Put(std::string key, std::string value, int64_t lease = 0) {
  return {.kind = Operation::Kind::kPut,
          .key = std::move(key),
          .value = std::move(value),
          .lease = lease};
}
inline Operation DeleteRange(std::string key, std::string end) {
  return {.kind = Operation::Kind::kDelete, .key = std::move(key), .end = std::move(end)};
}
inline Compare IsAbsent(std::string key) { return {.key = std::move(key)}; }
inline Compare HasValue(std::string key, std::string value) {
  return {.key = std::move(key), .what = Compare::What::kValue, .value = std::move(value)};
}

}  // namespace nowcalls::cluster

#endif  // NOWCALLS_CLUSTER_ETCD_H_
