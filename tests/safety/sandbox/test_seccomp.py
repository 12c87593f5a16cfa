"""The filter of system calls, run step by step as the kernel would run it."""

import errno
import socket
import struct

import pytest

from duckflow.safety.sandbox.seccomp import ALLOW, ERRNO, KILL, MACHINES, Machine, bytecode

LOAD, AND, RETURN = 0x20, 0x54, 0x06
EQUAL, AT_LEAST, ANY_BIT = 0x15, 0x35, 0x45
REFUSED = ERRNO | errno.EPERM
MISSING = ERRNO | errno.ENOSYS
CLONE_NEWUSER = 0x10000000


def verdict(program: bytes, arch: int, number: int, *arguments: int) -> int:
    data = struct.pack("<IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("<HBBI", program))
    held, at = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == RETURN:
            return value
        if code == LOAD:
            held = int.from_bytes(data[value : value + 4], "little")
        elif code == AND:
            held &= value
        else:
            met = {EQUAL: held == value, AT_LEAST: held >= value, ANY_BIT: bool(held & value)}[code]
            at += yes if met else no


@pytest.fixture(params=MACHINES.values(), ids=list(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return request.param


def decide(machine: Machine, name: str, *arguments: int, namespaces: bool = True, network: bool = False) -> int:
    program = bytecode(machine, namespaces=namespaces, network=network, unix_sockets=False)
    return verdict(program, machine.audit_arch, machine.numbers[name], *arguments)


def test_calls_by_another_interface_end_the_process(machine: Machine) -> None:
    program = bytecode(machine, namespaces=True, network=True, unix_sockets=True)
    assert verdict(program, 0x40000003, 1) == KILL
    if machine.first_foreign is not None:
        assert verdict(program, machine.audit_arch, machine.first_foreign + machine.numbers["socket"]) == KILL


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("network", [True, False])
def test_sockets_are_allowed_by_family(machine: Machine, namespaces: bool, network: bool) -> None:
    def opens(family: int) -> bool:
        return decide(machine, "socket", family, 1, namespaces=namespaces, network=network) == ALLOW

    # With namespaces the network is the command's own.
    assert opens(socket.AF_INET) == opens(socket.AF_INET6) == (namespaces or network)
    assert opens(16)
    assert not any(opens(family) for family in (socket.AF_UNIX, 17, 38, 40))


def test_only_socket_pairs_that_stay_a_pair_are_allowed(machine: Machine) -> None:
    nonblocking = 0o4000
    assert decide(machine, "socketpair", socket.AF_UNIX, socket.SOCK_STREAM | nonblocking) == ALLOW
    assert decide(machine, "socketpair", socket.AF_UNIX, socket.SOCK_DGRAM | nonblocking) == REFUSED
    assert decide(machine, "socketpair", 30, socket.SOCK_STREAM) == REFUSED


def test_namespaces_mounts_keys_and_terminals_are_refused(machine: Machine) -> None:
    assert decide(machine, "clone", 0x01200011) == ALLOW
    assert decide(machine, "clone", CLONE_NEWUSER | 17) == REFUSED
    assert decide(machine, "unshare", CLONE_NEWUSER) == REFUSED
    assert decide(machine, "clone3") == decide(machine, "io_uring_setup") == MISSING
    assert decide(machine, "mount") == decide(machine, "move_mount") == decide(machine, "keyctl") == REFUSED
    assert decide(machine, "ioctl", 0, 0x5412) == REFUSED
    assert decide(machine, "ioctl", 0, 0x5413) == ALLOW


def test_without_namespaces_more_is_refused(machine: Machine) -> None:
    for name in ("fchownat", "setxattr", "shmget", "mq_open"):
        assert decide(machine, name) == ALLOW
        assert decide(machine, name, namespaces=False) == REFUSED
    assert decide(machine, "prlimit64", 0, namespaces=False) == ALLOW
    assert decide(machine, "prlimit64", 1234, namespaces=False) == REFUSED


def test_everything_else_passes(machine: Machine) -> None:
    named = set(machine.numbers.values())
    program = bytecode(machine, namespaces=False, network=False, unix_sockets=False)
    assert all(verdict(program, machine.audit_arch, number) == ALLOW for number in set(range(500)) - named)
