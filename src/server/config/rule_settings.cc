#include "server/config/rule_settings.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text.h"
#include "server/config/setting_values.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kPollMsMin = 1'000;
constexpr int64_t kPollMsMax = 3'600'000;

Status CheckApart(const RuleFile& a, const RuleFile& b) {
  if (a.name_space == b.name_space) {
    return Status::InvalidArgument("names two files for namespace " + Quoted(a.name_space) + ", " +
                                   a.path + " and " + b.path +
                                   "; a file is the whole rule set of its namespace");
  }
  if (a.path != b.path) return Status::Ok();
  return Status::InvalidArgument("names " + a.path + " for two namespaces, " +
                                 Quoted(a.name_space) + " and " + Quoted(b.name_space) +
                                 "; a flowId belongs to one namespace, so each needs its own file");
}

// The first "=" ends the namespace: a path may have more, and so may the query of a URL.
RuleFile Split(const std::string& value) {
  const size_t equals = value.find('=');
  if (IsUrl(value) || equals == std::string::npos) return {"default", value};
  return {value.substr(0, equals), value.substr(equals + 1)};
}

// The environment separates values by commas, and so does a URL its endpoints of etcd.
std::vector<std::string> JoinEndpoints(const std::vector<std::string>& values) {
  std::vector<std::string> joined;
  bool open = false;
  for (const std::string& value : values) {
    if (open) {
      joined.back() += "," + value;
    } else {
      joined.push_back(value);
    }
    const std::string path = Split(joined.back()).path;
    open = IsEtcdUrl(path) && path.find('/', path.find("://") + 3) == std::string::npos;
  }
  return joined;
}

Status ParseRules(const std::vector<std::string>& values, ServerConfig* config) {
  std::vector<RuleFile> all;
  std::vector<RuleFile> files;
  std::vector<RuleUrl> urls;
  for (const std::string& value : JoinEndpoints(values)) {
    RuleFile file = Split(value);
    if (file.path.empty()) return MustBe("[NAMESPACE=]FILE", value);
    if (IsUrl(file.path)) {
      NOWCALLS_RETURN_IF_ERROR(
          CheckNamespace(file.name_space).WithContext(Quoted(file.name_space) + ": the namespace"));
      Result<RuleUrl> url = ParseRuleUrl(file.name_space, file.path);
      if (!url.ok()) return url.status();
      urls.push_back(*std::move(url));
    } else {
      NOWCALLS_RETURN_IF_ERROR(
          CheckNamespace(file.name_space).WithContext(Quoted(value) + ": the namespace"));
      NOWCALLS_RETURN_IF_ERROR(
          CheckRuleSource(file.path).WithContext(Quoted(value) + ": the file's name"));
      files.push_back(file);
    }
    for (const RuleFile& other : all) NOWCALLS_RETURN_IF_ERROR(CheckApart(other, file));
    all.push_back(std::move(file));
  }
  if (urls.size() > kRuleUrlsMax) {
    return Status::InvalidArgument("names " + std::to_string(urls.size()) +
                                   " URLs, and a server asks " + std::to_string(kRuleUrlsMax));
  }
  // Stored only when all values are valid.
  config->rules = std::move(files);
  config->rule_urls = std::move(urls);
  return Status::Ok();
}

std::string ShowRules(const ServerConfig& config) {
  std::vector<std::string> values;
  for (const RuleFile& file : config.rules) values.push_back(file.name_space + "=" + file.path);
  for (const RuleUrl& url : config.rule_urls) values.push_back(url.name_space + "=" + url.url);
  return ListText(values);
}

Status ParsePollMs(const std::vector<std::string>& values, ServerConfig* config) {
  int64_t ms = 0;
  if (!ParseNumber(values.front(), &ms) || ms < kPollMsMin || ms > kPollMsMax) {
    return MustBe(
        "an integer from " + std::to_string(kPollMsMin) + " to " + std::to_string(kPollMsMax),
        values.front());
  }
  config->rule_http.poll_ms = ms;
  return Status::Ok();
}

Setting HttpFile(std::string_view name, std::string_view group, std::string_view doc,
                 std::string_view more, std::string RuleHttpChoice::*member) {
  Setting setting{name, group, "FILE", doc, more, SettingKind::kText};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    config->rule_http.*member = values.front();
    return Status::Ok();
  };
  setting.get = [=](const ServerConfig& config) { return config.rule_http.*member; };
  return setting;
}

}  // namespace

void AddRuleSettings(std::string_view group, std::vector<Setting>* table) {
  Setting rules{"rules",
                group,
                "[NS=]FILE",
                "Rules of namespace NS (without NS: default): file or URL; repeatable.",
                "Sentinel's JSON, one file for each namespace. The environment separates files by "
                "commas; TOML has an array of strings. Write `default=FILE` when the path contains "
                "`=`. A path is UTF-8 without control characters. A pipe is read at the start "
                "only. See [rules](rules.md), and [sources](rule-sources.md) for URLs of etcd, "
                "Consul, Nacos, Apollo or a web server.",
                SettingKind::kList};
  rules.set = ParseRules;
  rules.get = ShowRules;
  table->push_back(std::move(rules));
  Setting poll{"rules-poll-ms",
               group,
               "MS",
               "Interval at which rules at http:// and https:// are asked for.",
               "Consul answers a change at once.",
               SettingKind::kInteger,
               std::to_string(kPollMsMin) + " to " + std::to_string(kPollMsMax)};
  poll.set = ParsePollMs;
  poll.get = [](const ServerConfig& c) { return std::to_string(c.rule_http.poll_ms); };
  table->push_back(std::move(poll));
  table->push_back(HttpFile("rules-ca", group, "PEM file of the CAs that https:// is believed by.",
                            "Without it: those of the machine.", &RuleHttpChoice::ca_file));
  table->push_back(HttpFile("rules-header-file", group,
                            "File of headers for http:// and https://, such as a token.",
                            "One `Name: value` a line. It is read before each request. See "
                            "[secrets](rule-sources.md#secrets).",
                            &RuleHttpChoice::header_file));
}

Status CheckRuleSettings(const ServerConfig& config) {
  const auto any = [&](auto holds) {
    return std::any_of(config.rule_urls.begin(), config.rule_urls.end(), holds);
  };
  if (!config.rule_http.ca_file.empty() && !any([](const RuleUrl& u) { return u.https(); })) {
    return Status::InvalidArgument("rules-ca needs rules at https://");
  }
  if (!config.rule_http.header_file.empty() && !any([](const RuleUrl& u) { return !u.etcd; })) {
    return Status::InvalidArgument("rules-header-file needs rules at http:// or https://");
  }
  return Status::Ok();
}

}  // namespace nowcalls::server
