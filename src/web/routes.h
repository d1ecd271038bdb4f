// The table of what HTTP serves.
//
// Thread: any.
#ifndef NOWCALLS_WEB_ROUTES_H_
#define NOWCALLS_WEB_ROUTES_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "access/access.h"

namespace nowcalls::web {

enum class RouteKind : uint8_t { kProbe, kMetrics, kApi, kPage };

struct Route {
  std::string_view path;  // With "/" at the end, all below it.
  RouteKind kind;
  access::Needs needs;
};

// The first that fits.
inline constexpr auto kRoutes = std::to_array<Route>({
    {"/healthz", RouteKind::kProbe, {access::Role::kAnybody, access::Scope::kServer}},
    {"/readyz", RouteKind::kProbe, {access::Role::kAnybody, access::Scope::kServer}},
    {"/metrics", RouteKind::kMetrics, {access::Role::kObserver, access::Scope::kServer}},
    {"/api/", RouteKind::kApi, {access::Role::kObserver, access::Scope::kServer}},
    {"/", RouteKind::kPage, {access::Role::kObserver, access::Scope::kServer}},
});

constexpr const Route& RouteOf(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (path == route.path || (route.path.back() == '/' && path.starts_with(route.path))) {
      return route;
    }
  }
  return kRoutes.back();  // Nothing is there; the page says so.
}

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_ROUTES_H_
