# find_package(nowcalls CONFIG): nowcalls::nowcalls, nowcalls::static, nowcalls::headers; with
# COMPONENTS embedded also nowcalls::embedded, which needs Debian's librocksdb-dev, liburing-dev,
# libssl-dev and libabsl-dev; with server nowcalls::server, which needs libuv1-dev, libspdlog-dev,
# libtomlplusplus-dev, libmicrohttpd-dev, libgnutls28-dev, libsystemd-dev and libcurl4-openssl-dev
# besides.
include(${CMAKE_CURRENT_LIST_DIR}/nowcallsTargets.cmake)
if("embedded" IN_LIST nowcalls_FIND_COMPONENTS OR "server" IN_LIST nowcalls_FIND_COMPONENTS)
  include(CMakeFindDependencyMacro)
  find_dependency(absl)
  include(${CMAKE_CURRENT_LIST_DIR}/nowcallsEmbedded.cmake)
  set(nowcalls_embedded_FOUND TRUE)
  set(nowcalls_server_FOUND TRUE)
endif()
foreach(component IN LISTS nowcalls_FIND_COMPONENTS)
  if(nowcalls_FIND_REQUIRED_${component} AND NOT nowcalls_${component}_FOUND)
    set(nowcalls_FOUND FALSE)
    set(nowcalls_NOT_FOUND_MESSAGE
        "nowcalls has no component ${component}; there are embedded and server")
  endif()
endforeach()
