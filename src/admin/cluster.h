// `cluster` and `cluster handover`.
//
// Thread: one.
#ifndef NOWCALLS_ADMIN_CLUSTER_H_
#define NOWCALLS_ADMIN_CLUSTER_H_

#include <span>
#include <string>

#include "admin/arguments.h"
#include "admin/columns.h"
#include "admin/output.h"
#include "admin/row_writer.h"
#include "client/blocking_client.h"
#include "nowcalls/status.h"
#include "wire/cluster_messages.h"

namespace nowcalls::admin {

// Lives no longer than the reply.
struct ListedMember {
  const wire::ClusterReply& cluster;
  const wire::ClusterMember& member;
};
template <>
std::span<const Column<ListedMember>> ColumnsOf();

Status PrintCluster(Format format, const wire::ClusterReply& cluster, Output* out);

// Has the writer, which `client` reaches, hand over, and waits for the next one. Returns the text
// for the operator. kNotFound: the same one serves again. kUnavailable: nobody answered.
Result<std::string> HandOver(const Arguments& arguments, client::BlockingClient* client);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_CLUSTER_H_
