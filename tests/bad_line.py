"""A bad line between two network namespaces, in user space: what netem does in kernels that
have it.

Each end is a TUN device, an interface whose packets a program reads and writes. A thread of
the test carries them from one to the other: a packet waits for those before it (the rate is
`bits_per_second`), travels for `delay` seconds, and may be lost on the way. Dice with a seed
say which: the 107th packet in a direction is lost in every run, or in none.

It dies with the test, however that ends: the thread is a daemon, and the devices are gone with
the files they were opened by. Needs root, ip (iproute2) and /dev/net/tun."""

import collections
import ctypes
import fcntl
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time

TUN = "/dev/net/tun"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET, SO_RCVBUFFORCE = 0x40000000, 33  # Python 3.11 has no names for these
MOST_WAITING = 1000  # packets in a direction; what comes on top is lost, as in a router
LARGEST = 65535  # bytes of a packet


def ip(*words):
    """Runs ip; subprocess.CalledProcessError has what it complained of in stderr."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def open_end(name):
    """A new TUN device: its packets are read from and written to this file."""
    end = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return end


class Direction:
    """From one end to the other. The delay is the same for all packets, so they arrive in the
    order they left in, and a queue is all it takes."""

    def __init__(self, source, target, seed):
        self.source, self.target = source, target
        self.dice = random.Random(seed)
        self.free = 0.0  # when the last packet has left
        self.waiting = collections.deque()  # (when it arrives, packet)
        self.carried = self.lost = 0


class BadLine:
    """Joins two namespaces, whose ends get the `addresses`. `carried` and `lost` count packets
    of both directions."""

    def __init__(self, namespaces, addresses, delay=0.020, loss=0.01, bits_per_second=100e6,
                 seed=1):
        self.delay, self.loss, self.bits_per_second = delay, loss, bits_per_second
        self.whole = True
        # Only the ends' names must be free, for the moment before they move.
        names = [f"lw{os.getpid()}{letter}" for letter in "ab"]
        ends = [open_end(name) for name in names]
        for name, namespace, ours, other in zip(names, namespaces, addresses, addresses[::-1]):
            ip("link", "set", name, "netns", namespace)
            # Without addrgenmode none IPv6 would add packets of its own to the count.
            ip("-n", namespace, "link", "set", name, "addrgenmode", "none", "txqueuelen",
               str(2 * MOST_WAITING))
            ip("-n", namespace, "addr", "add", ours, "peer", other, "dev", name)
            ip("-n", namespace, "link", "set", name, "up")
        self.directions = [Direction(ends[0], ends[1], seed),
                           Direction(ends[1], ends[0], seed + 1)]
        threading.Thread(target=self._carry, daemon=True).start()

    @property
    def carried(self):
        return sum(direction.carried for direction in self.directions)

    @property
    def lost(self):
        return sum(direction.lost for direction in self.directions)

    def cut(self):
        """From here on all is lost, and nobody is told: no reset, no closed connection."""
        self.whole = False

    def mend(self):
        self.whole = True

    def _carry(self):
        ready = select.epoll()
        by_end = {direction.source: direction for direction in self.directions}
        for end in by_end:
            ready.register(end, select.EPOLLIN)
        while True:
            due = [direction.waiting[0][0] for direction in self.directions if
                   direction.waiting]
            wait = max(0.0, min(due) - time.monotonic()) if due else None
            for end, event in ready.poll(wait):
                if event & ~select.EPOLLIN:  # its namespace was deleted
                    return
                self._take_all(by_end[end])
            for direction in self.directions:
                self._hand_over(direction)

    def _take_all(self, direction):
        """What has come to the source."""
        while True:
            try:
                packet = os.read(direction.source, LARGEST)
            except OSError:  # none is left, or the namespace is gone
                return
            now = time.monotonic()
            unlucky = direction.dice.random() < self.loss
            if unlucky or not self.whole or len(direction.waiting) >= MOST_WAITING:
                direction.lost += 1
                continue
            direction.free = max(now, direction.free) + 8 * len(packet) / self.bits_per_second
            direction.waiting.append((direction.free + self.delay, packet))

    def _hand_over(self, direction):
        """What is due at the target."""
        while direction.waiting and direction.waiting[0][0] <= time.monotonic():
            packet = direction.waiting.popleft()[1]
            if not self.whole:
                direction.lost += 1
                continue
            try:
                os.write(direction.target, packet)
                direction.carried += 1
            except OSError:  # the interface is down
                direction.lost += 1


def socket_in(namespace, address):
    """A datagram socket inside of a namespace. Namespaces belong to threads, so one is made
    that enters it; the socket stays there when the thread has ended."""
    made = []

    def make():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{namespace}", "rb") as place:
            if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
                made.append(OSError(ctypes.get_errno(), f"cannot enter {namespace}"))
                return
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        end.bind((address, 0))
        end.settimeout(2)
        made.append(end)

    maker = threading.Thread(target=make)
    maker.start()
    maker.join()
    if not made or isinstance(made[0], OSError):
        raise made[0] if made else OSError(f"no socket in {namespace}")
    return made[0]


def round_trips(ends, count):
    """Seconds of `count` round trips that were not lost, one after another."""
    here, there = ends
    seconds = []
    while len(seconds) < count:
        begin = time.monotonic()
        try:
            here.sendto(b"there", there.getsockname())
            there.sendto(*there.recvfrom(100))
            here.recv(100)
        except TimeoutError:
            continue  # lost
        seconds.append(time.monotonic() - begin)
    return seconds


def flood(ends, packets, size):
    """Sends `packets` of `size` bytes in bursts; how many came, and the bits per second of
    what came, headers (28 bytes) included, while a burst arrived."""
    here, there = ends
    burst, came, seconds = MOST_WAITING // 2, 0, 0.0
    for begin in range(0, packets, burst):
        for _ in range(begin, min(begin + burst, packets)):
            here.sendto(bytes(size), there.getsockname())
        times = []
        there.settimeout(0.2)
        try:
            while True:
                there.recv(size)
                times.append(time.monotonic())
        except TimeoutError:
            pass
        came += len(times)
        seconds += times[-1] - times[0]
    return came, came * 8 * (size + 28) / seconds
