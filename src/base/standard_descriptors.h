// OccupyStandardDescriptors: stdin, stdout and stderr are open, whatever the caller closed.
//
// Thread: the main one, before anything else in the process opens a file. A standard descriptor
// that is closed goes to the next file opened, and what is printed ends up in there: in a ledger,
// at worst. The placeholder's mode makes using it fail instead.
#ifndef NOWCALLS_BASE_STANDARD_DESCRIPTORS_H_
#define NOWCALLS_BASE_STANDARD_DESCRIPTORS_H_

namespace nowcalls {

// Ends the process with exit code 74 if it cannot.
void OccupyStandardDescriptors();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_STANDARD_DESCRIPTORS_H_
