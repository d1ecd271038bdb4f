// The columns of `rules sources`.
//
// Thread: any.
#ifndef NOWCALLS_ADMIN_NAMESPACE_COLUMNS_H_
#define NOWCALLS_ADMIN_NAMESPACE_COLUMNS_H_

#include <span>

#include "admin/columns.h"
#include "wire/namespace_rows.h"

namespace nowcalls::admin {

template <>
std::span<const Column<wire::NamespaceRow>> ColumnsOf();

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_NAMESPACE_COLUMNS_H_
