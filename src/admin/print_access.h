// What `access list` and `access test` print.
//
// Thread: one.
#ifndef NOWCALLS_ADMIN_PRINT_ACCESS_H_
#define NOWCALLS_ADMIN_PRINT_ACCESS_H_

#include <span>
#include <string>

#include "access/access_list.h"
#include "admin/columns.h"
#include "admin/output.h"
#include "admin/row_writer.h"
#include "nowcalls/status.h"
#include "wire/messages.h"

namespace nowcalls::admin {

// Live no longer than the row. `namespaces`: with commas; "*": all.
struct ListedPrincipal {
  const access::Entry& entry;
  std::string namespaces;
};
struct ListedIdentity {
  const wire::IdentifyReply& reply;
  std::string namespaces;
};
template <>
std::span<const Column<ListedPrincipal>> ColumnsOf();
template <>
std::span<const Column<ListedIdentity>> ColumnsOf();

Status PrintPrincipals(Format format, const access::AccessList& list, Output* out);
Status PrintIdentity(Format format, const wire::IdentifyReply& reply, Output* out);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_PRINT_ACCESS_H_
