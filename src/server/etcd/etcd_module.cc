#include "server/etcd/etcd_module.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "nowcalls_version.h"
#include "server/config/files.h"

namespace nowcalls::server {
namespace {

constexpr char kName[] = "nowcalls-etcd.so";
constexpr size_t kPemBytesMax = 1024 * 1024;

Status ReadFile(const std::string& setting, const std::string& path, std::string* text) {
  if (path.empty()) return {};
  Result<std::string> read = ReadWholeFile(path, kPemBytesMax);
  if (!read.ok()) return Status::InvalidArgument(setting + ": " + read.status().message());
  *text = *std::move(read);
  return {};
}

}  // namespace

Result<ConnectEtcd> LoadEtcdModule() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string path =
      (program.parent_path().parent_path() / "lib" / "nowcalls" / kName).string();
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return Status::IoError("etcd needs " + path + ", which cannot be loaded: " + dlerror());
  }
  using Version = const char*();
  using Connect = cluster::Etcd*(const cluster::EtcdOptions*);
  const auto version = reinterpret_cast<Version*>(dlsym(module, "nowcalls_etcd_version"));
  const auto connect = reinterpret_cast<Connect*>(dlsym(module, "nowcalls_etcd_connect"));
  if (version == nullptr || connect == nullptr || std::string_view(version()) != NOWCALLS_VERSION) {
    return Status::IoError(path + " is not of this version, " + NOWCALLS_VERSION);
  }
  return ConnectEtcd([connect](const cluster::EtcdOptions& etcd) {
    return std::unique_ptr<cluster::Etcd>(connect(&etcd));
  });
}

Result<cluster::EtcdOptions> ReadEtcdOptions(const ClusterChoice& choice) {
  cluster::EtcdOptions options{.endpoints = {}, .user = choice.user};
  NOWCALLS_RETURN_IF_ERROR(ReadFile("cluster-ca", choice.ca_file, &options.ca));
  NOWCALLS_RETURN_IF_ERROR(ReadFile("cluster-cert", choice.certificate_file, &options.certificate));
  NOWCALLS_RETURN_IF_ERROR(ReadFile("cluster-key", choice.key_file, &options.key));
  NOWCALLS_RETURN_IF_ERROR(
      ReadFile("cluster-password-file", choice.password_file, &options.password));
  options.password.resize(
      std::min(options.password.size(), options.password.find_first_of("\r\n")));
  return options;
}

}  // namespace nowcalls::server
