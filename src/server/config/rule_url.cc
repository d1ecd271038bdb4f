#include "server/config/rule_url.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace nowcalls::server {
namespace {

constexpr char kHeaderFile[] = "put the secret in a header, and that in rules-header-file";

bool IsSchemeLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Such as Consul's "token", Nacos' "accessToken".
bool IsSecret(std::string_view parameter) {
  std::string name(parameter.substr(0, parameter.find('=')));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::string_view kParts[] = {"token",      "passw",     "pwd",
                                         "secret",     "apikey",    "api_key",
                                         "access_key", "signature", "credential"};
  if (name == "sig" || name == "auth") return true;
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

Status CheckQuery(std::string_view query) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    if (IsSecret(parameter)) {
      return Status::InvalidArgument("names a URL with the parameter " +
                                     Quoted(parameter.substr(0, parameter.find('='))) +
                                     ", which log and ledger would show: " + kHeaderFile);
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return Status::Ok();
}

std::string_view AuthorityOf(std::string_view url) {
  const std::string_view rest = url.substr(url.find("://") + 3);
  return rest.substr(0, rest.find_first_of("/?#"));
}

Status CheckHasNoUser(std::string_view url) {
  if (AuthorityOf(url).find('@') == std::string_view::npos) return Status::Ok();
  return Status::InvalidArgument(
      std::string("names a URL with a user, which log and ledger would show: ") +
      (IsEtcdUrl(url) ? "see cluster-user and cluster-password-file" : kHeaderFile));
}

Status CheckHttpUrl(std::string_view url) {
  if (AuthorityOf(url).empty()) return Status::InvalidArgument(Quoted(url) + " names no host");
  const size_t question = url.find('?');
  if (question != std::string_view::npos) {
    NOWCALLS_RETURN_IF_ERROR(CheckQuery(url.substr(question + 1)));
  }
  if (url.find('#') == std::string_view::npos) return Status::Ok();
  return Status::InvalidArgument(Quoted(url) + " has a fragment (#), which no server sees");
}

Status CheckCharacters(std::string_view url) {
  if (url.size() > kRuleUrlBytesMax) {
    return Status::InvalidArgument("names a URL of more than " + std::to_string(kRuleUrlBytesMax) +
                                   " bytes");
  }
  const auto fits = [](char c) { return c > ' ' && c < 0x7f; };
  if (std::all_of(url.begin(), url.end(), fits)) return Status::Ok();
  return Status::InvalidArgument(
      "names a URL with a blank, or with what is not ASCII: write %20 and the like for a web "
      "server");
}

}  // namespace

bool IsUrl(std::string_view text) {
  const size_t colon = text.find("://");
  return colon != std::string_view::npos && colon > 0 &&
         std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(colon), IsSchemeLetter);
}

Result<RuleUrl> ParseRuleUrl(const std::string& name_space, const std::string& url) {
  NOWCALLS_RETURN_IF_ERROR(CheckCharacters(url));
  NOWCALLS_RETURN_IF_ERROR(CheckHasNoUser(url));
  RuleUrl parsed{.name_space = name_space, .url = url, .etcd = std::nullopt};
  if (IsEtcdUrl(url)) {
    Result<EtcdUrl> etcd = ParseEtcdUrl(url, "KEY");
    if (!etcd.ok()) return etcd.status();
    if (etcd->path.size() < 2) return Status::InvalidArgument(Quoted(url) + " names no key");
    parsed.etcd = *std::move(etcd);
    return parsed;
  }
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return Status::InvalidArgument(
        "takes URLs that begin with etcd://, etcds://, http:// or https://, got " +
        Quoted(url.substr(0, url.find("://") + 3)));
  }
  NOWCALLS_RETURN_IF_ERROR(CheckHttpUrl(url));
  return parsed;
}

}  // namespace nowcalls::server
