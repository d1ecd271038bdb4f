# Writes the files of the page into a C++ file, so that the server needs no files beside it.
#
# cmake -D OUTPUT=page_files.cc -D "FILES=a;b" -P embed.cmake
set(delimiter NOWCALLS_PAGE)
set(entries)
foreach(file IN LISTS FILES)
  cmake_path(GET file FILENAME name)
  file(READ ${file} content)
  string(FIND "${content}" ")${delimiter}\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${file} contains the delimiter ${delimiter}")
  endif()
  string(APPEND entries "    {\"${name}\", R\"${delimiter}(${content})${delimiter}\"},\n")
endforeach()
# Clang warns of strings that other compilers may find too long.
file(WRITE ${OUTPUT} "// Made by embed.cmake.
#include \"web/page_files.h\"

#pragma GCC diagnostic ignored \"-Woverlength-strings\"

namespace nowcalls::web {
namespace {

constexpr PageFile kFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace nowcalls::web
")
