#include "access/access_edit.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "access/access_file.h"
#include "base/hex.h"
#include "base/text.h"

namespace nowcalls::access {
namespace {

std::string QuotedToml(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string HexOf(const Digest& digest) {
  return QuotedToml(ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()}));
}

std::string ListLine(std::string_view field, const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + QuotedToml(text);
  return list.empty() ? "" : std::string(field) + " = [" + list + "]\n";
}

std::string BlockOf(const NewPrincipal& principal) {
  return "[[principal]]\nname = " + QuotedToml(principal.name) +
         "\nrole = " + QuotedToml(RoleName(principal.role)) + "\n" +
         ListLine("namespaces", principal.namespaces) +
         (principal.secret.has_value() ? "secret_sha256 = " + HexOf(*principal.secret) + "\n"
                                       : "") +
         ListLine("certificates", principal.certificates) +
         ListLine("networks", principal.networks);
}

size_t IndexOf(const std::vector<Entry>& entries, const std::string& name) {
  const auto has_name = [&](const Entry& entry) { return entry.principal.name == name; };
  return static_cast<size_t>(std::find_if(entries.begin(), entries.end(), has_name) -
                             entries.begin());
}

// The parser counts columns in characters, from 1.
size_t OffsetOf(std::string_view text, const toml::source_position& position) {
  size_t at = 0;
  for (uint32_t line = 1; line < position.line && at < text.size(); ++line) {
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  for (uint32_t column = 1; column < position.column && at < text.size(); ++column) {
    for (++at; at < text.size() && (text[at] & 0xc0) == 0x80;) ++at;
  }
  return at;
}

// In front of those that are there: what follows needs no look then. REQUIRES: valid.
std::string Inserted(std::string_view toml, size_t index, const Digest& secret) {
  const toml::table root = toml::parse(toml);
  const toml::table& principal = *root.get_as<toml::array>("principal")->get_as<toml::table>(index);
  std::string text(toml);
  const toml::node* const secrets = principal.get("secret_sha256");
  if (secrets == nullptr) {
    const size_t line = OffsetOf(toml, principal.find("name")->first.source().begin);
    return text.insert(line, "secret_sha256 = " + HexOf(secret) + "\n");
  }
  const size_t begin = OffsetOf(toml, secrets->source().begin);
  if (secrets->is_array()) return text.insert(begin + 1, HexOf(secret) + ", ");
  text.insert(OffsetOf(toml, secrets->source().end), "]");
  return text.insert(begin, "[" + HexOf(secret) + ", ");
}

}  // namespace

Result<std::string> WithPrincipal(std::string_view toml, const std::string& file,
                                  const NewPrincipal& principal) {
  const std::vector<Entry> before = ParseAccess(toml, file).entries;
  if (IndexOf(before, principal.name) < before.size()) {
    return Status::AlreadyExists(file + " has a principal " + Quoted(principal.name) + " already");
  }
  std::string text(toml);
  if (!text.empty()) text += text.ends_with('\n') ? "\n" : "\n\n";
  text += BlockOf(principal);
  NOWCALLS_RETURN_IF_ERROR(AccessList::Parse(text, file).status());
  return text;
}

Result<std::string> WithSecret(std::string_view toml, const std::string& file,
                               const std::string& name, const Digest& secret) {
  const auto before = AccessList::Parse(toml, file);
  if (!before.ok()) return before.status();
  std::vector<Entry> wanted = (*before)->entries();
  const size_t index = IndexOf(wanted, name);
  if (index == wanted.size()) {
    return Status::NotFound(file + " has no principal " + Quoted(name));
  }
  std::vector<Digest>& secrets = wanted[index].secrets;
  if (secrets.size() >= AccessList::kSecretsMax) {
    return Status::ResourceExhausted(file + ": principal " + Quoted(name) + " has " +
                                     std::to_string(secrets.size()) +
                                     " secrets; remove the digest of one that is no longer used");
  }
  secrets.insert(secrets.begin(), secret);
  std::string text = Inserted(toml, index, secret);
  // The text may have a form in which the place is another one: only what is meant may change.
  if (ParseAccess(text, file).entries == wanted) return text;
  return Status::FailedPrecondition(
      file + ": the fields of principal " + Quoted(name) +
      " must be lines of their own below [[principal]], so that one can be changed");
}

}  // namespace nowcalls::access
