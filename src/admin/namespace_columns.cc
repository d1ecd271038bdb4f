#include "admin/namespace_columns.h"

#include <string_view>

namespace nowcalls::admin {
namespace {

using wire::NamespaceRow;

constexpr Column<NamespaceRow> kNamespaceColumns[] = {
    {{"namespace", "NAMESPACE", Kind::kText},
     [](const NamespaceRow& r) { return Text(r.name_space); }},
    {{"rules", "RULES", Kind::kNumber}, [](const NamespaceRow& r) -> Cell { return r.rules; }},
    {{"sessions", "SESSIONS", Kind::kNumber},
     [](const NamespaceRow& r) -> Cell { return r.sessions; }},
    {{"sessions_online", "ONLINE", Kind::kNumber},
     [](const NamespaceRow& r) {
       return r.sessions_online.has_value() ? Cell(*r.sessions_online) : Cell();
     }},
    // The last, since a path may be long.
    {{"source", "SOURCE", Kind::kWholeText},
     [](const NamespaceRow& r) { return r.source.has_value() ? Cell(*r.source) : Cell(); }},
};

}  // namespace

template <>
std::span<const Column<NamespaceRow>> ColumnsOf() {
  return kNamespaceColumns;
}

}  // namespace nowcalls::admin
