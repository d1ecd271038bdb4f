// CopyTaker: takes a copy of the writer's ledger, for a member that the log cannot serve.
//
// Thread: any but the loop; blocks.
#ifndef NOWCALLS_SERVER_CLUSTER_COPY_TAKER_H_
#define NOWCALLS_SERVER_CLUSTER_COPY_TAKER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "backup/manifest.h"
#include "client/dial.h"
#include "nowcalls/status.h"

namespace nowcalls::server {

struct CopySourceAddress {
  std::string address;  // HOST:PORT of the writer.
  client::Security security{};
};

// Takes it to DATA_DIR/incoming, as a backup whose files are those of its manifest. `pause` waits
// so long; false: the end was asked for. kUnavailable: the writer does not answer, has no time, or
// the end: try again later. kPermissionDenied. kCorruption. kIoError.
Result<backup::Manifest> TakeCopy(const CopySourceAddress& from, const std::string& data_dir,
                                  const std::function<bool(int64_t ms)>& pause);

// Where TakeCopy left it.
std::string IncomingDir(const std::string& data_dir);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CLUSTER_COPY_TAKER_H_
