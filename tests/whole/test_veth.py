# SPDX-License-Identifier: BSD-3-Clause
"""Traffic through veth pairs of the daemon: between two of its namespaces, with ARP and neighbour discovery across the
pair, to kernel hosts on both sides."""

import errno
import socket

import pytest

from lab import GIVE_UP, eventually, inside
from test_hosts import ping


@pytest.fixture
def chain(lab):
    """host0 - p0 [default] v0 - v1 [far] p1 - host1"""
    router = lab.netns("router")
    hosts = [lab.kernel_host(f"host{n}", router, f"d{n}", f"10.{n}.0.2/24", f"10.{n}.0.1") for n in range(2)]
    daemon = lab.daemon(router, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    daemon.batch("netns add far", "link set p1 netns far", "link add v0 type veth peer name v1 netns far")
    daemon.batch("link set p0 up", "link set v0 up", "addr add 10.0.0.1/24 dev p0", "addr add 10.5.0.1/24 dev v0",
                 "route add 10.1.0.0/24 via 10.5.0.2")
    for line in ("link set p1 up", "link set v1 up", "addr add 10.1.0.1/24 dev p1", "addr add 10.5.0.2/24 dev v1",
                 "route add 10.0.0.0/24 via 10.5.0.1"):
        daemon(f"-n far {line}")
    yield hosts, daemon
    daemon.check_balance()


def test_hosts_reach_each_other_across_a_veth(chain):
    hosts, daemon = chain
    assert ping(hosts[0], "10.5.0.2", b"the far end")[8] == 63
    assert ping(hosts[0], "10.1.0.2", b"there")[8] == 62
    assert ping(hosts[1], "10.0.0.2", b"and back")[8] == 62
    links = daemon.link("v0"), daemon.json("-n far -s link show v1")[0]
    for one, other in (links, links[::-1]):
        assert one["stats64"]["tx"]["packets"] == other["stats64"]["rx"]["packets"] > 2
        assert one["stats64"]["tx"]["bytes"] == other["stats64"]["rx"]["bytes"]
    crossings = daemon.json("stats")["veth_crossings"]
    assert crossings == sum(link["stats64"]["tx"]["packets"] for link in links)


def test_circles_end(chain):
    hosts, daemon = chain
    daemon("route add 66.0.0.0/8 via 10.5.0.2")
    daemon("-n far route add 66.0.0.0/8 via 10.5.0.1")
    assert ping(hosts[0], "10.1.0.2", b"warm")
    with daemon.dropping(veth_loop=3):
        with inside(hosts[0]), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(3):
                sender.sendto(b"round and round", ("66.0.0.1", 9))


def test_deleting_one_end_stops_both(chain):
    hosts, daemon = chain
    assert ping(hosts[0], "10.1.0.2", b"before")
    daemon("-n far link del v1")
    eventually(lambda: daemon.names(), lambda names: "v0" not in names)
    with inside(hosts[0]), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(GIVE_UP)
        sender.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR: errors of the network, too
        sender.connect(("10.1.0.2", 9))
        sender.send(b"into nowhere")
        with pytest.raises(OSError) as told:
            sender.recv(1)
        assert told.value.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH)
