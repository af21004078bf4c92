"""Ports for servers that have to be told theirs before they start. To bind port 0, look and close leaves the number to
whoever binds or connects next; these are outside of the range from which the kernel gives such numbers, and a name that
this process holds until its end keeps them from other tests."""
import random
import socket

HELD = []


def candidates():
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        low, high = map(int, f.read().split())
    ports = [port for port in range(10000, 65536) if not low <= port <= high] or list(range(10000, 65536))
    random.shuffle(ports)
    return ports


def is_free(host, port):
    with socket.socket() as s:
        try:
            s.bind((host, port))
        except OSError:
            return False
    return True


def reserve(count, hosts=("127.0.0.1",)):
    """Ports that are free on every one of the hosts."""
    ports = []
    for port in candidates():
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0opwatch-test-port-{port}")
        except OSError:
            name.close()
            continue
        if not all(is_free(host, port) for host in hosts):
            name.close()
            continue
        HELD.append(name)
        ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("too few free ports")
