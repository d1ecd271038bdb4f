"""unit_filter.py UNIT PROGRAM [ARGUMENT...]: becomes the program under the system call filter that
systemd makes of the unit's SystemCallFilter=, RestrictAddressFamilies= and MemoryDenyWriteExecute=.

systemd-analyze says what is in a group of system calls; libseccomp, which systemd uses, loads the
filter.
"""

import errno
import os
import socket
import subprocess
import sys

import seccomp


def settings(unit):
    with open(unit, encoding="utf-8") as file:
        for line in file:
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith("#"):
                yield key, value.split()


def calls_of(name):
    """The system calls of a name, which may be a group such as @system-service."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    )
    members = [line.strip() for line in listed.stdout.splitlines()[1:]]
    found = set()
    for member in members:
        if member and not member.startswith("#"):
            found |= calls_of(member)
    return found


def main():
    unit, program = sys.argv[1], sys.argv[2:]
    allowed = calls_of("@default")
    families = []
    writes_or_executes = False
    for key, words in settings(unit):
        if key == "SystemCallFilter":
            removes = words[0].startswith("~")
            words[0] = words[0].lstrip("~")
            for word in words:
                allowed = allowed - calls_of(word) if removes else allowed | calls_of(word)
        elif key == "RestrictAddressFamilies":
            families = [getattr(socket, word) for word in words]
        elif key == "MemoryDenyWriteExecute":
            writes_or_executes = words == ["yes"]

    denied = seccomp.ERRNO(errno.EPERM)
    rules = seccomp.SyscallFilter(denied)
    special = {"socket"} | ({"mmap", "mprotect", "pkey_mprotect"} if writes_or_executes else set())
    for call in sorted(allowed - special):
        if seccomp.resolve_syscall(seccomp.Arch(), call) >= 0:
            rules.add_rule(seccomp.ALLOW, call)
    for family in families:
        rules.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, family))
    if writes_or_executes:
        # PROT_WRITE is 2, PROT_EXEC is 4.
        rules.add_rule(seccomp.ALLOW, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, 4, 0))
        rules.add_rule(seccomp.ALLOW, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, 6, 4))
        rules.add_rule(seccomp.ALLOW, "mprotect", seccomp.Arg(2, seccomp.MASKED_EQ, 4, 0))
    rules.load()
    os.execv(program[0], program)


main()
