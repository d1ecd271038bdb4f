#include "admin/print_access.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace nowcalls::admin {
namespace {

constexpr Column<ListedPrincipal> kPrincipalColumns[] = {
    {{"name", "NAME", Kind::kWholeText},
     [](const ListedPrincipal& r) { return Text(r.entry.principal.name); }},
    {{"role", "ROLE", Kind::kText},
     [](const ListedPrincipal& r) { return Text(access::RoleName(r.entry.principal.role)); }},
    {{"namespaces", "NAMESPACES", Kind::kText},
     [](const ListedPrincipal& r) { return Text(r.namespaces); }},
    {{"secrets", "SECRETS", Kind::kNumber},
     [](const ListedPrincipal& r) -> Cell { return uint64_t{r.entry.secrets.size()}; }},
    {{"certificates", "CERTIFICATES", Kind::kNumber},
     [](const ListedPrincipal& r) -> Cell { return uint64_t{r.entry.certificates.size()}; }},
    {{"networks", "NETWORKS", Kind::kNumber},
     [](const ListedPrincipal& r) -> Cell { return uint64_t{r.entry.networks.size()}; }},
};

constexpr Column<ListedIdentity> kIdentityColumns[] = {
    {{"name", "NAME", Kind::kWholeText},
     [](const ListedIdentity& r) -> Cell {
       return r.reply.name.empty() ? Cell() : Text(r.reply.name);
     }},
    {{"role", "ROLE", Kind::kText}, [](const ListedIdentity& r) { return Text(r.reply.role); }},
    {{"namespaces", "NAMESPACES", Kind::kText},
     [](const ListedIdentity& r) { return Text(r.namespaces); }},
    {{"proof", "PROOF", Kind::kText}, [](const ListedIdentity& r) { return Text(r.reply.proof); }},
};

std::string NamespacesText(const std::optional<std::vector<std::string>>& namespaces) {
  if (!namespaces.has_value()) return "*";
  std::string text;
  for (const std::string& pattern : *namespaces) text += (text.empty() ? "" : ",") + pattern;
  return text;
}

}  // namespace

template <>
std::span<const Column<ListedPrincipal>> ColumnsOf() {
  return kPrincipalColumns;
}

template <>
std::span<const Column<ListedIdentity>> ColumnsOf() {
  return kIdentityColumns;
}

Status PrintPrincipals(Format format, const access::AccessList& list, Output* out) {
  return PrintRows<ListedPrincipal>(format, 0, out, [&](const auto& sink) {
    for (const access::Entry& entry : list.entries()) {
      NOWCALLS_RETURN_IF_ERROR(sink({entry, NamespacesText(entry.principal.namespaces)}));
    }
    return Status::Ok();
  });
}

Status PrintIdentity(Format format, const wire::IdentifyReply& reply, Output* out) {
  return PrintRows<ListedIdentity>(format, 0, out, [&](const auto& sink) {
    return sink({reply, NamespacesText(reply.namespaces)});
  });
}

}  // namespace nowcalls::admin
