# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

import pytest  # noqa: E402

import lab as laboratory  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="network namespaces and veth devices need root"))


def _stop(*_):
    raise KeyboardInterrupt  # fixtures clean up


@pytest.fixture(scope="session", autouse=True)
def session():
    if os.geteuid() != 0:
        yield
        return
    for program in (laboratory.MAYFLYD, laboratory.MAYFLY):
        if not program.exists():
            pytest.exit(f"{program} does not exist: MAYFLY_BUILD names the build directory", returncode=3)
    signal.signal(signal.SIGTERM, _stop)
    laboratory.sweep()
    yield
    left = [name for name in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout.split()
            if name.startswith(f"{laboratory.PREFIX}-{os.getpid()}-")]
    assert not left, f"namespaces are left: {left}"


@pytest.fixture
def lab():
    with laboratory.Lab() as made:
        yield made


@pytest.fixture(scope="module")
def shared_lab():
    """For a module whose tests share a daemon, because each leaves it as it was."""
    with laboratory.Lab() as made:
        yield made


# net_null without its endless stream of packets: for tests that look at tables only.
TABLE_PORTS = {"port0": "net_null0,no-rx=1", "port1": "net_null1,no-rx=1"}


@pytest.fixture(scope="module")
def tables(shared_lab):
    daemon = shared_lab.daemon(ports=TABLE_PORTS)
    return daemon, daemon.resources()


@pytest.fixture
def mayfly(tables):
    """A daemon with two idle ports; what a test makes of it is removed, and then nothing of it may be left."""
    daemon, empty = tables
    yield daemon
    daemon.forget(TABLE_PORTS)
    laboratory.eventually(daemon.resources, empty, "what is in use after the test")
    daemon.check_balance()
    daemon.check_log()
