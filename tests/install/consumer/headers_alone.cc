// A program of somebody else, who has nothing of nowcalls but what is installed.
#include <cstdio>

#include "nowcalls/status.h"

int main() {
  std::printf("%s\n", nowcalls::Status::Unavailable("nobody is there").ToString().c_str());
}
