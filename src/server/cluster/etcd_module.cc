#include "server/cluster/etcd_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "nowcalls_version.h"

namespace nowcalls::server {
namespace {

constexpr char kName[] = "nowcalls-etcd.so";

}  // namespace

Result<ConnectEtcd> LoadEtcdModule() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string path =
      (program.parent_path().parent_path() / "lib" / "nowcalls" / kName).string();
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return Status::IoError("a member of a cluster needs " + path +
                           ", which cannot be loaded: " + dlerror());
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

}  // namespace nowcalls::server
